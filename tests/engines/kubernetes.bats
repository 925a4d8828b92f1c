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

# rendered [VALUES]: the chart, by helm or by what stands in for it.
rendered() {
    local chart=$GMUX_SOURCE/packaging/helm/gmux
    if command -v helm >/dev/null; then
        helm template gmux "$chart" --namespace kube-system ${1:+-f "$1"}
    else
        python3 "$BATS_TEST_DIRNAME/chart.py" "$chart" "$@"
    fi
}

@test "the Helm chart: by its defaults the manifest, with values what they say" {
    python3 -c 'import yaml' 2>/dev/null || skip "needs python3-yaml"
    if command -v helm >/dev/null; then
        run -0 helm lint --strict "$GMUX_SOURCE/packaging/helm/gmux"
    fi
    rendered >"$DIR/default.yaml"
    cat >"$DIR/values.yaml" <<'END'
config: |
  default-share = 50
  [users.root]
  memory = "8G"
defaultShare: 33
multiuserServer: true
staticPartitioning: true
pipeDirectory: /run/my gmux
image: {repository: registry.example/gmux, tag: "2"}
resources: {limits: {memory: 1Gi}}
END
    rendered "$DIR/values.yaml" >"$DIR/values-out.yaml"
    python3 - "$GMUX_SOURCE/examples/kubernetes/gmux.yaml" "$DIR" <<'END'
import sys, yaml
documents = lambda path: {d["kind"]: d for d in yaml.safe_load_all(open(path))}
by_hand, default, other = documents(sys.argv[1]), documents(sys.argv[2] + "/default.yaml"), documents(sys.argv[2] + "/values-out.yaml")
pod = lambda all: all["DaemonSet"]["spec"]["template"]["spec"]
def same(a, b):
    a, b = dict(pod(a)), dict(pod(b))
    (ca,), (cb,) = a.pop("containers"), b.pop("containers")
    for c in ca, cb:
        for key in "image", "imagePullPolicy":
            c.pop(key, None)
        c["livenessProbe"].pop("timeoutSeconds", None)
    return a == b and ca == cb
assert set(default) == {"DaemonSet"} and same(by_hand, default)
labels = lambda d: d["spec"]["template"]["metadata"]["labels"]
for d in default["DaemonSet"], other["DaemonSet"]:
    assert d["spec"]["selector"]["matchLabels"].items() <= labels(d).items()
    assert d["metadata"]["namespace"] == "kube-system"
container, = pod(other)["containers"]
assert container["image"] == "registry.example/gmux:2" and container["resources"] == {"limits": {"memory": "1Gi"}}
assert {e["name"]: e["value"] for e in container["env"]} == {
    "NVIDIA_VISIBLE_DEVICES": "all", "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "33", "GMUX_MULTIUSER_SERVER": "1",
    "GMUX_STATIC_PARTITIONING": "1", "GMUX_CONFIG": "/etc/gmux/gmux.toml"}
volumes = {v["name"]: v for v in pod(other)["volumes"]}
assert volumes["pipe"]["hostPath"]["path"] == "/run/my gmux"
assert volumes["config"]["configMap"]["name"] == other["ConfigMap"]["metadata"]["name"]
assert {m["name"] for m in container["volumeMounts"]} == set(volumes)
open(sys.argv[2] + "/gmux.toml", "w").write(other["ConfigMap"]["data"]["gmux.toml"])
END
    chmod 644 "$DIR/gmux.toml"
    GMUX_CONFIG=$DIR/gmux.toml run -0 "$GMUX_BUILD/src/control/gmux-control" --check
    if command -v kubectl >/dev/null; then # reads it as kustomize's resources
        printf 'resources: [default.yaml, values-out.yaml]\nnameSuffix: -x\n' >"$DIR/kustomization.yaml"
        sed -i 's/name: gmux$/name: gmux-2/' "$DIR/values-out.yaml"
        run -0 kubectl kustomize "$DIR"
        [ "$(grep -c '^kind: DaemonSet' <<<"$output")" = 2 ]
    fi
    echo 'imgae: {tag: "2"}' >"$DIR/values.yaml"
    command -v helm >/dev/null || run -1 rendered "$DIR/values.yaml"
}
