# The installed tree works, wherever it was moved to: daemon, server, executor, device module and compiler find each
# other.

load helper

setup() {
    common_setup
    unset GMUX_LIBEXECDIR
    export GMUX_GENUINE_LIBCUDA=none GMUX_DEVICE=soft GMUX_CACHE_DIR=$DIR/objects
}

teardown() {
    common_teardown
}

# Only root can look at processes that protect themselves.
is_program() {
    [ "$(id -u)" != 0 ] || [ "$(readlink "/proc/$1/exe")" = "$2" ]
}

@test "a tree installed under DESTDIR serves a program, with and without its daemon" {
    DESTDIR=$DIR/root meson install -C "$GMUX_BUILD" --no-rebuild --quiet >"$DIR/install.out" 2>&1 3>&-
    control=$(find "$DIR/root" -name gmux-control)
    library=$(dirname "$(find "$DIR/root" -name libcuda.so.1)")
    libexec=$(dirname "$(find "$DIR/root" -name gmux-executor)")
    cp "$GMUX_BUILD/examples/vecadd" "$DIR/vecadd" # its run path leads nowhere there
    export LD_LIBRARY_PATH=$library
    start_daemon
    run -0 "$DIR/vecadd"
    [[ $output == *"all correct"* ]]
    server=$(the_server)
    executor=$(cat "/proc/$server/task/$server/children")
    is_program "$server" "$libexec/gmux-server"
    is_program "${executor%% *}" "$libexec/gmux-executor"
    [ "$(count_lines server 'interpreter only')" = "$([ -e "$libexec/gmux-jit" ] && echo 0 || echo 1)" ]
    "$control" quit
    # Its own name for NVIDIA's users, and a private server where there is no daemon.
    [ "$(find "$DIR/root" -name nvidia-cuda-mps-control)" -ef "$control" ]
    CUDA_MPS_PIPE_DIRECTORY=/nonexistent GMUX_LOG=info run -0 "$DIR/vecadd"
    [[ $output == *"private server"* ]]
}
