# Makes one member of etcd the only one, with the data that it has. The folder RECOVER lets a run continue after an interrupted one.
# The caller sets ETCD_DIR.
RECOVER=$S/recover

# v_ctr: ends a container that an earlier attempt may have left running, with etcd's ports in use.
v_ctr() {
	ctr -n k8s.io tasks kill -s SIGKILL paictl-recover >/dev/null 2>&1 || true
	ctr -n k8s.io tasks delete --force paictl-recover >/dev/null 2>&1 || true
	ctr -n k8s.io containers delete paictl-recover >/dev/null 2>&1 || true
}

# v_arguments FILE: prints etcd's arguments from its manifest, one per line.
v_arguments() {
	awk '/^  - command:/ { on = 1; next } on && /^    - --/ { sub(/^    - /, ""); print; next } on && !/^    - / { exit }' "$1"
}

# v_argument NAME: prints the value of one of them.
v_argument() { v_arguments "$RECOVER/etcd.yaml" | sed -n "s/^--$1=//p"; }

# v_check: checks the requirements before etcd is stopped.
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

# v_away ADDRESS moves etcd's manifest to RECOVER and waits until the kubelet has ended etcd.
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

# v_fails MESSAGE: ends the script with the message and the program's last error.
v_fails() {
	said=$(grep -e '"level":"fatal"' -e '"level":"panic"' -e '^panic' -e '^Error' "$RECOVER/log" | tail -n 1 | cut -c1-400)
	v_ctr
	echo "$1; it said: ${said:-$(tail -n 1 "$RECOVER/log" | cut -c1-300)} -> the earlier data is in $RECOVER/member; to restore it, run the same command with --undo" >&2
	exit 1
}

v_tool() { # runs a program of etcd's image, with etcd's data and keys
	ctr -n k8s.io run --rm --net-host --mount "type=bind,src=$R$ETCD_DIR,dst=$ETCD_DIR,options=rbind:rw" \
		--mount "type=bind,src=$R/etc/kubernetes/pki/etcd,dst=/etc/kubernetes/pki/etcd,options=rbind:ro" \
		"$(sed -n 's/^ *image: //p' "$RECOVER/etcd.yaml" | head -n 1)" paictl-recover "$@" >"$RECOVER/log" 2>&1 </dev/null
}

# v_force turns the data into that of a cluster with one member. First this etcd runs once with --force-new-cluster, which applies all that it
# has received and removes the other members. Then a snapshot of it becomes a new cluster, whose revisions are higher than any earlier one: a
# client that watches from an earlier revision must list again instead of continuing. Members of the former cluster that come back can't join it.
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
	# shellcheck disable=SC2046 # one word per line
	v_tool etcd $(v_arguments "$RECOVER/etcd.yaml") --force-new-cluster &
	pid=$!
	i=0
	until list=$(e_list true) && [ "$(printf %s "$list" | grep -o '"ID"' | grep -c .)" = 1 ]; do
		i=$((i + 1))
		if [ "$i" -ge 240 ] || ! kill -0 "$pid" 2>/dev/null; then v_fails "etcd did not become a single-member cluster"; fi
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

# v_manifest restores etcd's manifest.
v_manifest() {
	m=$R/etc/kubernetes/manifests
	if [ ! -f "$m/etcd.yaml" ]; then
		# The kubelet ignores files whose names start with a dot.
		cp -p "$RECOVER/etcd.yaml" "$m/.etcd.yaml.paictl-new"
		mv -f "$m/.etcd.yaml.paictl-new" "$m/etcd.yaml"
	fi
}

# v_back starts etcd again and waits for the API server. The earlier data stays until the next recovery.
v_back() {
	v_manifest
	# The API server has ended again and again without etcd, and the kubelet waits up to five minutes before it restarts such a container. A
	# restart of the kubelet resets that wait.
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

# v_undo undoes an attempt that wasn't completed.
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
