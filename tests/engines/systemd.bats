# systemd with the units of packaging/systemd, in a container of its own: its first process is the manager, its /usr the host's.

load ../e2e/helper

setup() {
    command -v systemd-nspawn >/dev/null && [ -x /lib/systemd/systemd ] || skip "needs Debian's systemd and systemd-container"
    [ "$(id -u)" = 0 ] || skip "needs root"
    real_setup
    DESTDIR=$DIR/tree meson install -C "$GMUX_BUILD" --no-rebuild --quiet >"$DIR/install.out" 2>&1 3>&-
    [ -d "$DIR/tree/usr/local" ] || skip "the build has another prefix than /usr/local"
    cp "$GMUX_BUILD"/examples/{vecadd,nbody} "$DIR/tree/usr/local/bin"
    make_machine
    under_systemd <<<true || skip "systemd does not run here: $(tail -n 1 "$DIR/nspawn.out")"
}

teardown() {
    common_teardown
}

make_machine() {
    local folder root=$DIR/machine
    mkdir -p "$root"/{usr,etc/systemd/system,tmp,root,var/log,proc,sys,dev,run,opt}
    for folder in bin sbin lib lib64; do
        ln -s "usr/$folder" "$root/$folder"
    done
    printf 'root:x:0:0::/root:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n' >"$root/etc/passwd"
    cp /etc/ld.so.cache "$root/etc"
    : >"$root/etc/machine-id"
    cat >"$root/etc/systemd/system/steps.service" <<'END'
[Unit]
SuccessAction=exit
FailureAction=exit
[Service]
Type=oneshot
Environment=GMUX_REQUIRE=1 GMUX_GENUINE_LIBCUDA=none
ExecStart=/bin/bash -eux /steps
StandardOutput=file:/steps.out
StandardError=inherit
END
}

# Runs the script on standard input in a machine that has just begun; its output is in $DIR/machine/steps.out.
under_systemd() {
    cat - >"$DIR/machine/steps"
    systemd-nspawn -q -D "$DIR/machine" --bind-ro=/usr --bind-ro="$DIR/tree/usr/local:/usr/local" --register=no --keep-unit --private-network \
        /lib/systemd/systemd --unit=steps.service --log-target=null >"$DIR/nspawn.out" 2>&1 </dev/null 3>&- || {
        tail -n 40 "$DIR/machine/steps.out"
        return 1
    }
}

# What both tests do in the machine.
words=$(cat <<'END'
export LD_LIBRARY_PATH=$(echo /usr/local/lib/*/gmux)
somebody() { setpriv --reuid 12345 --regid 12345 --clear-groups "$@"; }
# Before it has a server it is listed with "-" there.
is_served() { for ((i = 0; i < 300; i++)); do [[ $(server_of) != [0-9]* ]] || return 0; sleep 0.1; done; return 1; }
server_of() { gmux ls | grep nbody | { read -r _ _ pid _; echo $pid; }; }
main() { systemctl show -p MainPID --value gmux; }
END
)

@test "the service: ready once programs can connect, started anew when it dies, and they go on" {
    under_systemd <<END
$words
systemctl start gmux.service
[ \$(systemctl show -p OOMPolicy --value gmux) = continue ]
somebody vecadd
nbody -benchmark -numbodies=1024 -iterations=100000000 &
is_served
daemon=\$(main)
server=\$(server_of)
systemctl reload gmux
gmux-control restart
is_served
[ \$(main) = \$daemon ]
kill -9 \$daemon
until [ "\$(main)" != \$daemon ] && [ "\$(main)" != 0 ] && systemctl is-active gmux; do sleep 0.1; done
is_served
[ "\$(server_of)" = "\$server" ]
kill %1
somebody vecadd
systemctl stop gmux
! pgrep gmux
grep "Exit with status 0" /var/log/nvidia-mps/control.log
END
    grep "all correct" "$DIR/machine/steps.out"
}

@test "the sockets: the first program starts the daemon, and nothing is left of them" {
    under_systemd <<END
$words
systemd-tmpfiles --create gmux.conf
systemctl enable --now gmux.socket
systemctl is-active gmux.socket gmux-privileged.socket
! systemctl is-active gmux.service
somebody vecadd
systemctl is-active gmux.service
gmux-control set_default_active_thread_percentage 50
systemctl stop gmux.service
somebody vecadd
systemctl is-active gmux.service
systemctl stop gmux.service gmux.socket gmux-privileged.socket
[ ! -e /tmp/nvidia-mps/control ] && [ ! -e /tmp/nvidia-mps/control_privileged ]
END
    [ "$(grep -c "all correct" "$DIR/machine/steps.out")" = 2 ]
}
