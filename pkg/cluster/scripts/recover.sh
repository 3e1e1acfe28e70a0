# What makes one member of etcd the only one, with the data that it has. RECOVER has what an attempt that was cut off goes on with.
# Given by the caller: ETCD_DIR.
RECOVER=$S/recover

# v_ctr: what an earlier attempt has started may still be at work, and has etcd's ports.
v_ctr() {
	ctr -n k8s.io tasks kill -s SIGKILL paictl-recover >/dev/null 2>&1 || true
	ctr -n k8s.io tasks delete --force paictl-recover >/dev/null 2>&1 || true
	ctr -n k8s.io containers delete paictl-recover >/dev/null 2>&1 || true
}

# v_arguments FILE: etcd's, as they stand in its manifest, one a line.
v_arguments() {
	awk '/^  - command:/ { on = 1; next } on && /^    - --/ { sub(/^    - /, ""); print; next } on && !/^    - / { exit }' "$1"
}

# v_argument NAME: one of them.
v_argument() { v_arguments "$RECOVER/etcd.yaml" | sed -n "s/^--$1=//p"; }

# v_check: what must be so before etcd is taken away.
v_check() {
	[ ! -d "$RECOVER" ] || return 0
	m=$R/etc/kubernetes/manifests/etcd.yaml
	dir=$(v_arguments "$m" | sed -n 's/^--data-dir=//p')
	[ "$dir" = "$ETCD_DIR" ] || { echo "etcd has its data in $dir, but the configuration says $ETCD_DIR -> write etcd-data-path: $dir in kubernetes-configuration.yaml" >&2; exit 1; }
	need=$(du -sk "$R$ETCD_DIR/member" | cut -f 1)
	for d in "$S" "$R$ETCD_DIR"; do
		free=$(df -Pk "$d" | awk 'NR == 2 { print $4 }')
		[ "$free" -gt $((2 * need + 65536)) ] || { echo "$d has $((free / 1024)) MiB free, and copies of etcd's data take $((2 * need / 1024 + 64)) -> free some space" >&2; exit 1; }
	done
}

v_listens() { timeout 5 bash -c 'exec 3<>"/dev/tcp/$1/$2"' etcd "$1" "$2" 2>/dev/null; }

# v_away ADDRESS takes etcd's manifest away and waits until the kubelet has ended etcd.
v_away() {
	m=$R/etc/kubernetes/manifests/etcd.yaml
	(umask 077; mkdir -p "$RECOVER")
	v_ctr
	if [ -f "$m" ]; then
		cp -p "$m" "$RECOVER/etcd.yaml.new"
		sync "$RECOVER/etcd.yaml.new"
		mv -f "$RECOVER/etcd.yaml.new" "$RECOVER/etcd.yaml"
		rm -f "$m"
		note change "static pod etcd"
	fi
	i=0
	while v_listens 127.0.0.1 2379 || v_listens "$1" 2380; do
		i=$((i + 1))
		[ "$i" -lt 240 ] || { echo "the kubelet did not end etcd within two minutes -> see journalctl -u kubelet on the host, then run the same command again" >&2; exit 1; }
		sleep 0.5
	done
}

# v_fails WHAT: ends the script, with what the program said.
v_fails() {
	said=$(grep -e '"level":"fatal"' -e '"level":"panic"' -e '^panic' -e '^Error' "$RECOVER/log" | tail -n 1 | cut -c1-400)
	v_ctr
	echo "$1; it said: ${said:-$(tail -n 1 "$RECOVER/log" | cut -c1-300)} -> the data as it was is in $RECOVER/member; to put it back: the same command with --undo" >&2
	exit 1
}

v_tool() { # a program of etcd's image, as etcd runs
	ctr -n k8s.io run --rm --net-host --mount "type=bind,src=$R$ETCD_DIR,dst=$ETCD_DIR,options=rbind:rw" \
		--mount "type=bind,src=$R/etc/kubernetes/pki/etcd,dst=/etc/kubernetes/pki/etcd,options=rbind:ro" \
		"$(sed -n 's/^ *image: //p' "$RECOVER/etcd.yaml" | head -n 1)" paictl-recover "$@" >"$RECOVER/log" 2>&1 </dev/null
}

# v_force makes the data that of a cluster of one. First this etcd runs once with --force-new-cluster, which applies all that it has
# received and takes the other members out. Then a snapshot of that becomes a new cluster, with revisions behind all that there may have been:
# who watches with a later one must list again, and not go on; and members of the former cluster are no members of this one, should they come back.
v_force() {
	[ ! -e "$RECOVER/forced" ] || return 0
	if [ ! -d "$RECOVER/member" ]; then
		rm -rf "$RECOVER/member.new"
		cp -a "$R$ETCD_DIR/member" "$RECOVER/member.new"
		mv "$RECOVER/member.new" "$RECOVER/member"
	fi
	name=$(v_argument name) url=$(v_argument initial-advertise-peer-urls)
	new=$ETCD_DIR/paictl-recover
	rm -rf "$R$new" "$R$new.db" "$R$new.db.part"
	if [ ! -d "$R$ETCD_DIR/member" ]; then cp -a "$RECOVER/member" "$R$ETCD_DIR/member"; fi
	# shellcheck disable=SC2046 # a word a line
	v_tool etcd $(v_arguments "$RECOVER/etcd.yaml") --force-new-cluster &
	pid=$!
	i=0
	until list=$(e_list true) && [ "$(printf %s "$list" | grep -o '"ID"' | grep -c .)" = 1 ]; do
		i=$((i + 1))
		if [ "$i" -ge 240 ] || ! kill -0 "$pid" 2>/dev/null; then v_fails "etcd did not become a cluster of its own"; fi
		sleep 0.5
	done
	k=/etc/kubernetes/pki/etcd
	ctr -n k8s.io tasks exec --exec-id "snapshot-$$" paictl-recover etcdctl --endpoints=https://127.0.0.1:2379 --cacert=$k/ca.crt --cert=$k/server.crt --key=$k/server.key \
		snapshot save "$new.db" >&2 || v_fails "no snapshot could be made of etcd's data"
	ctr -n k8s.io tasks kill -s SIGTERM paictl-recover >/dev/null 2>&1 || true
	wait "$pid" || true
	v_ctr
	v_tool etcdutl snapshot restore "$new.db" --data-dir "$new" --name "$name" --initial-cluster "$name=$url" --initial-advertise-peer-urls "$url" \
		--bump-revision 1000000000 --mark-compacted || v_fails "etcd's snapshot could not be made a cluster"
	rm -rf "$R$ETCD_DIR/member"
	mv "$R$new/member" "$R$ETCD_DIR/member"
	: >"$RECOVER/forced"
	rm -rf "$R$new" "$R$new.db"
	note change "etcd's members"
}

# v_manifest puts etcd's manifest back.
v_manifest() {
	m=$R/etc/kubernetes/manifests
	if [ ! -f "$m/etcd.yaml" ]; then
		# A file whose name begins with a dot is none for the kubelet.
		cp -p "$RECOVER/etcd.yaml" "$m/.etcd.yaml.paictl-new"
		mv -f "$m/.etcd.yaml.paictl-new" "$m/etcd.yaml"
	fi
}

# v_back lets etcd run again and waits for the API server. The data as it was before stays until the next time.
v_back() {
	v_manifest
	# The API server ended as long as there was no etcd, and the kubelet waits up to five minutes before it starts such a one again; its own start
	# makes it forget that.
	systemctl restart kubelet.service
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

# v_undo takes an attempt that didn't come to its end back.
v_undo() {
	[ -d "$RECOVER" ] || return 0
	v_ctr
	if [ -d "$RECOVER/member" ] && [ -f "$RECOVER/etcd.yaml" ]; then
		rm -f "$R/etc/kubernetes/manifests/etcd.yaml"
		rm -f "$RECOVER/forced"
		rm -rf "$R$ETCD_DIR/member.paictl-new" "$R$ETCD_DIR/paictl-recover" "$R$ETCD_DIR/paictl-recover.db"
		cp -a "$RECOVER/member" "$R$ETCD_DIR/member.paictl-new"
		rm -rf "$R$ETCD_DIR/member"
		mv "$R$ETCD_DIR/member.paictl-new" "$R$ETCD_DIR/member"
	fi
	[ ! -f "$RECOVER/etcd.yaml" ] || v_manifest
	rm -rf "$RECOVER"
	note change "static pod etcd"
}
