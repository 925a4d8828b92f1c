# Podman with runc, from Debian's packages: examples/containers and examples/cdi. The image is an empty one: containers see the
# host's /usr, and an installed tree of this build in /usr/local.

load ../e2e/helper

# What every container here has: nothing but what it is given.
alone=(--rm --network none --read-only --cap-drop all --ulimit nofile=1024:1024 --ulimit nproc=1024:1024 -v /usr:/usr:ro)

setup() {
    command -v podman >/dev/null && command -v runc >/dev/null || skip "needs Debian's podman and runc"
    [ "$(id -u)" = 0 ] || skip "needs root"
    real_setup
    export STORAGE_DRIVER=vfs
    engine=(podman --root "$DIR/storage" --runroot "$DIR/run" --runtime runc --cgroup-manager=cgroupfs)
    DESTDIR=$DIR/tree meson install -C "$GMUX_BUILD" --no-rebuild --quiet >"$DIR/install.out" 2>&1 3>&-
    installed=$DIR/tree/usr/local
    [ -d "$installed" ] || skip "the build has another prefix than /usr/local"
    cp "$GMUX_BUILD"/examples/{vecadd,nbody} "$installed/bin"
    library=/usr/local/$(cd "$installed" && echo lib/*/gmux)
    make_image
    "${engine[@]}" run "${alone[@]}" local/gmux true 2>"$DIR/podman.err" || skip "containers do not run here: $(tail -n 1 "$DIR/podman.err")"
    mkdir -p "$DIR/pipe"
}

teardown() {
    [ -n "${DIR:-}" ] || return 0
    "${engine[@]}" rm --force --time 0 --all >/dev/null 2>&1 || true
    "${engine[@]}" image rm --force --all >/dev/null 2>&1 || true
    rm -f "${spec:-}"
    common_teardown
}

make_image() {
    local folder
    mkdir -p "$DIR"/image/{usr,etc,tmp,root,var/log,proc,sys,dev,run,opt}
    for folder in bin sbin lib lib64; do
        ln -s "usr/$folder" "$DIR/image/$folder"
    done
    cp /etc/passwd /etc/group /etc/ld.so.cache "$DIR/image/etc"
    tar -C "$DIR/image" -c . | "${engine[@]}" import - local/gmux >/dev/null 2>&1
}

# prepare_compose: `compose` is podman-compose with the example's file and what this machine needs besides.
prepare_compose() {
    command -v podman-compose >/dev/null || skip "needs Debian's podman-compose"
    export GMUX_IMAGE=localhost/local/gmux GMUX_PIPE=$DIR/pipe GMUX_DEVICE=soft GMUX_LIBRARY=$library
    export PROGRAM=/usr/local/bin/vecadd
    cp "$GMUX_SOURCE/examples/containers/compose.yaml" "$DIR"
    {
        echo "services:"
        for name in gmux one two three; do
            printf '  %s:\n    volumes: ["/usr:/usr:ro", "%s:/usr/local:ro", "%s:/tmp/nvidia-mps"]\n' "$name" "$installed" "$DIR/pipe"
            printf '    ulimits: {nofile: {soft: 1024, hard: 1024}, nproc: {soft: 1024, hard: 1024}}\n'
        done
    } >"$DIR/test.yaml"
    # podman-compose 1.0.3 puts services that want no network into its own as well.
    printf '#!/bin/bash\nargs=("$@")\nfor i in "${!args[@]}"; do\n    [[ ${args[i]} != --net* || ${args[i+1]} = none ]] || unset "args[i]" "args[i+1]"\ndone\nexec %s "${args[@]}"\n' "${engine[*]}" >"$DIR/podman"
    chmod +x "$DIR/podman"
    compose=(podman-compose --podman-path "$DIR/podman" -p gmux -f "$DIR/compose.yaml" -f "$DIR/test.yaml")
}

# are_served: the three programs have come to their ends under the daemon.
are_served() {
    local name uid
    for name in one two three; do
        [ "$("${engine[@]}" wait "gmux_${name}_1")" = 0 ] || { cat "$DIR/compose.out"; "${engine[@]}" logs "gmux_${name}_1"; false; }
        "${engine[@]}" logs "gmux_${name}_1" 2>&1 | grep "all correct"
    done
    "${engine[@]}" logs gmux_gmux_1 >"$DIR/daemon.out" 2>&1
    for uid in 10001 10002 10003; do
        grep "Starting new server [0-9]* for user $uid" "$DIR/daemon.out"
    done
}

@test "three users' containers share a device through a fourth one's daemon, by the compose file" {
    prepare_compose
    "${compose[@]}" up -d >"$DIR/compose.out" 2>&1 3>&- || { cat "$DIR/compose.out"; false; }
    are_served
    "${compose[@]}" down -t 5 >"$DIR/compose.out" 2>&1 3>&- || { cat "$DIR/compose.out"; false; }
}

@test "programs that begin before the daemon wait for it, by the compose file" {
    prepare_compose
    "${compose[@]}" up -d one two three >"$DIR/compose.out" 2>&1 3>&- || { cat "$DIR/compose.out"; false; }
    for name in one two three; do # no daemon, and nobody has run on his own
        [ "$("${engine[@]}" inspect -f '{{.State.Running}}' "gmux_${name}_1")" = true ]
        [[ $("${engine[@]}" logs "gmux_${name}_1" 2>&1) != *"all correct"* ]]
    done
    "${compose[@]}" up -d gmux >"$DIR/compose.out" 2>&1 3>&- || { cat "$DIR/compose.out"; false; }
    are_served
    "${compose[@]}" down -t 5 >"$DIR/compose.out" 2>&1 3>&- || { cat "$DIR/compose.out"; false; }
}

@test "a container finds the host's daemon; a limit holds there, and its end is seen" {
    start_daemon
    "${engine[@]}" run -d --name long "${alone[@]:1}" --user 10001 -v "$installed:/usr/local:ro" -v "$DIR/pipe:/tmp/nvidia-mps" \
        -e LD_LIBRARY_PATH="$library" -e CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=33 -e GMUX_REQUIRE=1 \
        local/gmux /usr/local/bin/nbody -benchmark -numbodies=1024 -iterations=1000000 >/dev/null
    shared() { "$control" clients "$(the_server)" 2>/dev/null | grep $'\t33.0\t'; }
    until_true 300 shared || { "${engine[@]}" logs long; "$control" ps; false; }
    "${engine[@]}" kill long >/dev/null
    until_true 100 has_line server "Client process [0-9]* disconnected"
}

@test "a device of the CDI specification gives a container library, daemon and share" {
    mkdir -p /var/run/cdi
    spec=/var/run/cdi/gmux-test-$$.yaml
    sed -e "s|/usr/lib/x86_64-linux-gnu/gmux|$(echo "$installed"/lib/*/gmux)|" -e "s|hostPath: /tmp/nvidia-mps|hostPath: $DIR/pipe|" \
        -e "s|kind: gmux/|kind: gmux.test$$/|" "$GMUX_SOURCE/examples/cdi/gmux.yaml" >"$spec"
    start_daemon
    run -0 "${engine[@]}" run "${alone[@]}" --user 10001 --device "gmux.test$$/share=third" -v "$installed/bin:/opt/bin:ro" local/gmux \
        sh -c 'echo "share $CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"; /opt/bin/vecadd'
    [[ $output == *"share 33"*"all correct"* ]]
    grep "Starting new server [0-9]* for user 10001" "$DIR/log/control.log"
}
