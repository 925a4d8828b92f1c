# What Kubernetes' device plugin does with a daemon, step by step, and our manifests as its own tool reads them.

load ../e2e/helper

setup() {
    real_setup
}

teardown() {
    common_teardown
}

# nvidia-device-plugin's MPS daemon: replicas 4 of one GPU with 16 GiB.
@test "the device plugin's commands, in its order and form" {
    mkdir -p -m 755 "$DIR/pipe" "$DIR/log"
    mps=$GMUX_BUILD/src/control/nvidia-cuda-mps-control
    "$mps" -d 3>&-
    run -0 "$mps" <<<"set_default_device_pinned_mem_limit 0 4096M"
    printf 'set_default_active_thread_percentage 25' | "$mps" # no newline at its end
    # The health check, and the log that it follows.
    [ "$("$mps" <<<get_default_active_thread_percentage)" = 25.0 ]
    [ -s "$DIR/log/control.log" ]
    run -0 "$GMUX_BUILD/examples/vecadd"
    run -0 "$mps" <<<quit
    until_true 100 test ! -e "$DIR/pipe/nvidia-cuda-mps-control.pid"
    run ! "$mps" <<<get_default_active_thread_percentage # unhealthy now
}

@test "the manifests are what kubectl accepts" {
    command -v kubectl >/dev/null || skip "needs kubectl"
    run -0 kubectl kustomize "$GMUX_SOURCE/examples/kubernetes"
    [[ $output == *"kind: DaemonSet"* ]]
}

@test "daemon and client mean the same directory, and the client asks for no privilege" {
    python3 -c 'import yaml' 2>/dev/null || skip "needs python3-yaml"
    python3 - "$GMUX_SOURCE/examples/kubernetes" <<'END'
import sys, yaml
daemon = yaml.safe_load(open(sys.argv[1] + "/gmux.yaml"))["spec"]["template"]["spec"]
client = yaml.safe_load(open(sys.argv[1] + "/client.yaml"))["spec"]
where = lambda pod: {v["name"]: v.get("hostPath", {}).get("path") for v in pod["volumes"]}["pipe"]
assert where(daemon) == where(client)
mounted = lambda pod: {m["name"]: m["mountPath"] for m in pod["containers"][0]["volumeMounts"]}["pipe"]
assert mounted(daemon) == mounted(client) == "/tmp/nvidia-mps"
secure = client["containers"][0]["securityContext"]
assert secure["runAsNonRoot"] and not secure["allowPrivilegeEscalation"] and secure["capabilities"] == {"drop": ["ALL"]}
assert not any(client.get(k) for k in ("hostIPC", "hostPID", "hostNetwork"))
assert not any(daemon.get(k) for k in ("hostIPC", "hostPID", "hostNetwork"))
END
}
