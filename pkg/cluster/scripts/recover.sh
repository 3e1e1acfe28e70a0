# What makes one member of etcd the only one, with the data that it has. RECOVER has what an attempt that was cut off goes on with.
RECOVER=$S/recover

# v_ctr: what an earlier attempt has started may still be at work.
v_ctr() {
	ctr -n k8s.io tasks kill -s SIGKILL paictl-recover >/dev/null 2>&1 || true
	ctr -n k8s.io tasks delete --force paictl-recover >/dev/null 2>&1 || true
	ctr -n k8s.io containers delete paictl-recover >/dev/null 2>&1 || true
}

# v_away takes etcd's manifest away and waits until the kubelet has ended etcd.
v_away() {
	m=$R/etc/kubernetes/manifests/etcd.yaml
	(umask 077; mkdir -p "$RECOVER")
	if [ -f "$m" ]; then
		cp -p "$m" "$RECOVER/etcd.yaml.new"
		sync "$RECOVER/etcd.yaml.new"
		mv -f "$RECOVER/etcd.yaml.new" "$RECOVER/etcd.yaml"
		rm -f "$m"
		note change "static pod etcd"
	fi
	i=0
	while timeout 5 bash -c 'exec 3<>"/dev/tcp/$1/$2"' etcd 127.0.0.1 2379 2>/dev/null; do
		i=$((i + 1))
		[ "$i" -lt 240 ] || { echo "the kubelet did not end etcd within two minutes -> see journalctl -u kubelet on the host, then run the same command again" >&2; exit 1; }
		sleep 0.5
	done
}

# v_arguments: etcd's, as they stand in its manifest, one a line.
v_arguments() {
	awk '/^  - command:/ { on = 1; next } on && /^    - --/ { sub(/^    - /, ""); print; next } on && !/^    - / { exit }' "$RECOVER/etcd.yaml"
}

# v_force runs this etcd once with --force-new-cluster: it takes all other members out of its own list. The manifest never has that
# option: at its next start etcd would take those out that have joined meanwhile. Given by the caller: ETCD_DIR.
v_force() {
	[ ! -e "$RECOVER/forced" ] || return 0
	v_ctr
	if [ ! -d "$RECOVER/member" ]; then
		rm -rf "$RECOVER/member.new"
		cp -a "$R$ETCD_DIR/member" "$RECOVER/member.new"
		mv "$RECOVER/member.new" "$RECOVER/member"
	fi
	image=$(sed -n 's/^ *image: //p' "$RECOVER/etcd.yaml" | head -n 1)
	# shellcheck disable=SC2046 # a word a line
	ctr -n k8s.io run --rm --net-host --mount "type=bind,src=$R$ETCD_DIR,dst=$ETCD_DIR,options=rbind:rw" \
		--mount "type=bind,src=$R/etc/kubernetes/pki/etcd,dst=/etc/kubernetes/pki/etcd,options=rbind:ro" \
		"$image" paictl-recover etcd $(v_arguments) --force-new-cluster >"$RECOVER/log" 2>&1 </dev/null &
	pid=$!
	i=0
	until list=$(e_list true) && [ "$(printf %s "$list" | grep -o '"ID"' | grep -c .)" = 1 ]; do
		i=$((i + 1))
		if [ "$i" -ge 240 ] || ! kill -0 "$pid" 2>/dev/null; then
			said=$(tail -n 1 "$RECOVER/log" | cut -c1-300)
			v_ctr
			echo "etcd did not become a cluster of its own; it said: ${said:-nothing} -> its data as it was is in $RECOVER/member; restore a backup: paictl cluster restore" >&2
			exit 1
		fi
		sleep 0.5
	done
	ctr -n k8s.io tasks kill -s SIGTERM paictl-recover >/dev/null 2>&1 || true
	wait "$pid" || true
	v_ctr
	: >"$RECOVER/forced"
	note change "etcd's members"
}

# v_back puts the manifest back and waits for the API server. The data as it was before stays until the next time.
v_back() {
	m=$R/etc/kubernetes/manifests
	if [ ! -f "$m/etcd.yaml" ]; then
		# A file whose name begins with a dot is none for the kubelet.
		cp -p "$RECOVER/etcd.yaml" "$m/.etcd.yaml.paictl-new"
		mv -f "$m/.etcd.yaml.paictl-new" "$m/etcd.yaml"
	fi
	i=0
	until self get --raw /readyz --request-timeout=10s >/dev/null 2>&1; do
		i=$((i + 1))
		[ "$i" -lt 600 ] || { echo "the API server is not ready after five minutes -> see journalctl -u kubelet and /var/log/pods on the host, then run the same command again" >&2; exit 1; }
		sleep 0.5
	done
	rm -rf "$S/etcd-before-recovery"
	if [ -d "$RECOVER/member" ]; then mv "$RECOVER/member" "$S/etcd-before-recovery"; fi
	rm -rf "$RECOVER"
}
