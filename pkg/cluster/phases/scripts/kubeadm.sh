CRI=unix:///run/containerd/containerd.sock

# k_left: reports whether kubeadm has already run here.
k_left() {
	[ -e "$R/etc/kubernetes/kubelet.conf" ] || [ -e "$R/etc/kubernetes/bootstrap-kubelet.conf" ] ||
		[ -e "$R/etc/kubernetes/manifests/kube-apiserver.yaml" ] || [ -d "$R/etc/kubernetes/pki" ] ||
		[ -e "$R/var/lib/kubelet/config.yaml" ]
}

# k_clear removes the files that an interrupted attempt of paictl has left. Preflight has made
# sure that the host has no other Kubernetes. The caller sets ETCD_DIR, and ALONE=1 to leave
# the cluster's other members of etcd out of it.
k_clear() {
	rm -f "$S/member"
	if k_left; then
		note change "kubeadm reset"
		kubeadm reset -f --cri-socket "$CRI" ${ALONE:+--skip-phases=remove-etcd-member} >&2
	fi
	rm -rf "$R/etc/kubernetes/pki" "$R$ETCD_DIR/member" "$S/kubeadm-applied" "$S/manifests" "$S/recover" "$S/kubelet-moves" "$S/authority-kubelet"
	own_tree "$ETCD_DIR"
	k_pod_network
}

# k_ignored CHECKS: sets ignored to these kubeadm checks, and adds the check of etcd's folder if that holds only lost+found.
k_ignored() {
	ignored=$1
	if [ "$(ls -A "$R$ETCD_DIR" 2>/dev/null)" = lost+found ]; then ignored=${ignored:+$ignored,}DirAvailable-$(printf %s "$ETCD_DIR" | tr / -); fi
}

# k_pod_network removes the pods' network of an earlier node, whose pods "kubeadm reset" has
# ended. The next node has another subnet, and with the bridge's old address no pod would start.
# The configuration is removed last: it shows that the network isn't removed yet.
k_pod_network() {
	conf=$R/etc/cni/net.d/10-paictl-flannel.conflist
	[ -e "$conf" ] || return 0
	net=$(flannel_was_given NETWORK)
	[ -z "$net" ] || ip -4 route flush root "$net" 2>/dev/null || true
	for l in $(pod_links); do ip link delete "$l" 2>/dev/null || true; done
	rm -rf "$R/run/flannel" "$R/var/lib/cni/networks/paictl-flannel"
	rm -f "$conf.new" "$conf"
	note change "pod network"
}

# p_encryption creates the key that encrypts secrets at rest. It never leaves the control
# plane machines.
p_encryption() {
	f=$R/etc/paictl/encryption.yaml
	[ ! -s "$f" ] || return 0
	own_file /etc/paictl/encryption.yaml
	key=$(head -c 32 /dev/urandom | base64 | tr -d '\n')
	(
		umask 077
		cat >"$f.paictl-new" <<EOF
apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
  - resources: [secrets]
    providers:
      - secretbox:
          keys:
            - name: paictl-1
              secret: $key
      - identity: {}
EOF
	)
	sync "$f.paictl-new"
	mv -f "$f.paictl-new" "$f"
	sync "${f%/*}"
}

# k_causes SINCE: prints why static pods don't start, a line "cause: program: its last error" for containerd, the kubelet and
# the first component that ended. For containerd and the kubelet, only errors about pods and errors that end the program count:
# they print many others at each start.
k_causes() {
	for u_ in containerd kubelet; do
		said_=$(journalctl -u "$u_.service" --since "@$1" -o cat --no-pager 2>/dev/null | awk '
			!/ level=(error|fatal) / && !/^[EF][0-9]+ / { next }
			/cni plugin not initialized|no network config found/ { next }
			{
				first = /Error syncing pod|RunPodSandbox|CreateContainer|StartContainer|PullImage/
				if (!first && !/ level=fatal |^F[0-9]+ |"command failed"|ContainerManager|manifest file/) next
				if (!match($0, / (err|error)="([^"\\]|\\.)*"/) && !match($0, / msg="([^"\\]|\\.)*"/) && !match($0, /\] .*/)) next
				t = substr($0, RSTART + 1, RLENGTH - 1)
				if (sub(/^[a-z]+="/, "", t)) sub(/"$/, "", t)
				sub(/^\] /, "", t)
				while (sub(/\\\\/, "\\", t)) { }
				gsub(/\\"/, "\"", t)
				gsub(/\t/, " ", t)
				if (first) pod = t; else other = t
			}
			END {
				t = pod != "" ? pod : other
				if (length(t) > 500) t = substr(t, 1, 200) " … " substr(t, length(t) - 280) # the cause is at the end
				print t
			}')
		[ -z "$said_" ] || printf 'cause: %s: %s\n' "$u_" "$said_" >&2
	done
	for u_ in etcd kube-apiserver kube-controller-manager kube-scheduler; do
		# Each restart starts a new file, and the kubelet keeps those of the last container that ended and of the running one. While
		# it waits before the next restart, only the first exists.
		d_=$(ls -td "$R/var/log/pods/kube-system_$u_-"*/"$u_" 2>/dev/null | head -n 1)
		f_=$(ls -t "$d_"/*.log 2>/dev/null | awk 'NR == 1 && !/\/0\.log$/ || NR == 2 { f = $0 } END { print f }')
		if [ -n "$f_" ]; then
			printf 'cause: %s: %s\n' "$u_" "$(sed 's/^[^ ]* std[a-z]* [FP] //' "$f_" | grep . | tail -n 1 | tr '\t' ' ' | cut -c 1-400)" >&2
			return 0
		fi
	done
}

# k_applied HASH: records the hash of the configuration with which the control plane runs.
k_applied() {
	printf '%s\n' "$1" >"$S/kubeadm-applied.new"
	mv -f "$S/kubeadm-applied.new" "$S/kubeadm-applied"
}

# k_remember KEY VALUE: records in the cluster a value that applies to all of its machines.
k_remember() {
	self get configmap -n kube-system paictl --request-timeout=10s >/dev/null 2>&1 || self create configmap -n kube-system paictl >&2
	self patch configmap -n kube-system paictl --type merge -p "{\"data\":{\"$1\":\"$2\"}}" >&2
}

# k_stored HASH: records the hash of the settings that are stored in the cluster.
k_stored() { k_remember stored "$1"; }

# k_server FILE URL: sets the API server of a kubeconfig.
k_server() {
	f=$R/etc/kubernetes/$1
	[ -f "$f" ] || return 0
	if grep -q "^ *server: *$2\$" "$f"; then return 0; fi
	(umask 077; sed "s|^\( *server: *\).*|\1$2|" "$f" >"$f.paictl-new")
	sync "$f.paictl-new"
	mv -f "$f.paictl-new" "$f"
	note change "/etc/kubernetes/$1"
}

# k_name: records the name at which the API has been reached so far.
k_name() {
	[ -f "$KUBECONFIG" ] || return 0
	name=$(sed -n '/^ *server: *https:\/\//{s///; s/:[0-9]*$//p;q;}' "$KUBECONFIG")
	[ -n "$name" ] || return 0
	k_keep "$name"
}

# k_keep NAME: records a name that certificates keep.
k_keep() {
	if grep -qxF "$1" "$S/api-names" 2>/dev/null; then return 0; fi
	{ cat "$S/api-names" 2>/dev/null || true; printf '%s\n' "$1"; } >"$S/api-names.new"
	mv -f "$S/api-names.new" "$S/api-names"
}

# k_move URL WAIT: moves the kubelet to another address of the API, and back if it doesn't work there. The mark means that a
# restart is due, also after an interrupted attempt.
# The caller defines v_kubelet and its dependencies.
k_move() {
	f=$R/etc/kubernetes/kubelet.conf
	old=$(sed -n '/^ *server: */{s///p;q;}' "$f")
	: >"$S/kubelet-moves"
	k_server kubelet.conf "$1"
	systemctl restart kubelet.service
	if ! (v_kubelet "$2"); then
		k_server kubelet.conf "$old"
		[ "$old" = "$1" ] || rm -f "$S/kubelet-moves"
		systemctl restart kubelet.service
		echo "the kubelet doesn't reach the API at $1, and is back at $old -> see above, and journalctl -u kubelet on the host" >&2
		exit 1
	fi
	rm -f "$S/kubelet-moves"
	note change kubelet.service
}

# k_discovery URL: sets the API server that joining machines find. kubeadm writes it once, when it creates the cluster.
k_discovery() {
	info=$(self -n kube-public get configmap cluster-info --request-timeout=10s -o 'jsonpath={.data.kubeconfig}')
	if printf '%s\n' "$info" | grep -q "^ *server: *$1\$"; then return 0; fi
	printf 'data:\n  kubeconfig: |\n' >"$S/cluster-info.yaml"
	printf '%s\n' "$info" | sed "s|^\( *server: *\).*|\1$1|; s/^/    /" >>"$S/cluster-info.yaml"
	self -n kube-public patch configmap cluster-info --type merge --patch-file "$S/cluster-info.yaml" >&2
	rm -f "$S/cluster-info.yaml"
}

# k_init IGNORED-CHECKS HASH
k_init() {
	k_ignored "$1"
	since=$(date +%s) code=0
	kubeadm init --config "$R/etc/paictl/kubeadm.yaml" --skip-token-print ${ignored:+--ignore-preflight-errors="$ignored"} >&2 || code=$?
	[ "$code" = 0 ] || { k_causes "$since"; exit "$code"; }
	k_applied "$2"
	: >"$S/member"
	note change member
}

# k_named LINE: prints the settings with the names of earlier API addresses, which some machines still use; and with a line for the ClusterConfiguration.
k_named() {
	names=$(sed 's/.*/  - &/' "$S/api-names" 2>/dev/null) || names=
	awk -v line="$1" -v names="$names" '{ print } /^kind: ClusterConfiguration$/ && line != "" { print line } /^  certSANs:$/ && names != "" { print names }' "$c"
}

# k_certificate NAME...: creates certificates again, whose names may have changed. They are created
# beside the old ones, which stay until both files of a pair exist.
k_certificate() {
	pki=$R/etc/kubernetes/pki new=$S/pki
	rm -rf "$new"
	(umask 077; mkdir -p "$new/etcd")
	cp -p "$pki/ca.crt" "$pki/ca.key" "$new/"
	cp -p "$pki/etcd/ca.crt" "$pki/etcd/ca.key" "$new/etcd/"
	k_named "certificatesDir: $new" >"$S/certificates.yaml"
	for n; do
		kubeadm init phase certs "$n" --config "$S/certificates.yaml" >&2
		f=$(printf %s "$n" | sed 's|^etcd-|etcd/|')
		c_chain "$pki/$f.crt" "$new/$f.crt"
		mv -f "$new/$f.key" "$pki/$f.key"
		mv -f "$new/$f.crt" "$pki/$f.crt"
	done
	rm -rf "$new" "$S/certificates.yaml"
}

# k_pod COMPONENT FIELD: prints a field of the static pod that the kubelet shows in the API.
k_pod() { self -n kube-system get pod "$1-$NODE" --request-timeout=10s -o "jsonpath={$2}" 2>/dev/null || true; }

# k_pod_hash COMPONENT: prints the hash of the manifest with which it runs.
k_pod_hash() { k_pod "$1" '.metadata.annotations.kubernetes\.io/config\.hash'; }

# k_static PHASE COMPONENT...: writes manifests with a phase of kubeadm, and waits until each
# component whose manifest has changed runs with the new one. If one doesn't come up, the
# manifests that worked are restored.
k_static() {
	phase_=$1
	shift
	m=$R/etc/kubernetes/manifests
	old= since=$(date +%s)
	for x; do old="$old $x=$(k_pod_hash "$x")=$(sha256sum <"$m/$x.yaml" | cut -c1-64)"; done
	# shellcheck disable=SC2086 # two words
	kubeadm init phase $phase_ --config "$c" >&2
	for x; do
		if cmp -s "$m/$x.yaml" "$S/manifests/$x.yaml"; then continue; fi
		was=$(printf '%s\n' "$old" | tr ' ' '\n' | sed -n "s/^$x=//p")
		if [ "${was#*=}" = "$(sha256sum <"$m/$x.yaml" | cut -c1-64)" ]; then
			# An interrupted attempt wrote it, and the pod may already run with it.
			was=$(cat "$S/manifests/$x.hash" 2>/dev/null) || was=
		fi
		was=${was%%=*}
		i=0
		until k_runs "$x" "$was"; do
			i=$((i + 1))
			[ "$i" -lt 240 ] || k_put_back "$x"
			sleep 0.5
		done
		note change "static pod $x"
	done
}

# k_runs COMPONENT HASH: reports whether it is ready, with a manifest other than that of the hash.
k_runs() {
	now=$(k_pod_hash "$1") || return 1
	[ -n "$now" ] && [ "$now" != "$2" ] || return 1
	[ "$(k_pod "$1" '.status.conditions[?(@.type=="Ready")].status')" = True ] || return 1
	self get --raw /readyz --request-timeout=10s >/dev/null 2>&1
}

# image_of MANIFEST
image_of() { sed -n 's/^ *image: //p' "$1" | head -n 1; }

# k_put_back COMPONENT: restores the manifests, and ends the script.
k_put_back() {
	said=$(tail -n 1 "$(ls -t "$R/var/log/pods/kube-system_$1-"*/"$1"/*.log 2>/dev/null | head -n 1)" 2>/dev/null | cut -c1-300) || said=
	kept=
	for f in "$S"/manifests/*.yaml; do
		# A newer etcd that works has already written data that the earlier one can't read.
		if [ "${f##*/}" = etcd.yaml ] && [ "$1" != etcd ] && [ "$(image_of "$f")" != "$(image_of "$m/etcd.yaml")" ]; then
			kept=' (except for etcd, which stays as it is now)'
			rm -f "$S/kubeadm-applied"
			continue
		fi
		# The kubelet ignores files whose names start with a dot.
		cp -p "$f" "$m/.${f##*/}.paictl-new"
		mv -f "$m/.${f##*/}.paictl-new" "$m/${f##*/}"
	done
	rm -rf "$S/manifests"
	k_causes "$since"
	echo "$1 did not come up with the new settings, so the earlier ones are back in force$kept; it said: ${said:-nothing} -> correct what has changed in kubernetes-configuration.yaml (extra.kubeadm), and run the same command again" >&2
	exit 1
}

# k_same_etcd: reports whether the new settings leave etcd's manifest unchanged, except for its initial members.
# etcd reads those when its data is empty, and "kubeadm join" writes others than "kubeadm init"
# does: the first change of another component would restart a joined etcd without need.
k_same_etcd() {
	cmp -s "$m/etcd.yaml" "$S/manifests/etcd.yaml" || return 1
	new=$S/etcd.new
	rm -rf "$new"
	(umask 077; mkdir "$new")
	KUBEADM_INIT_DRYRUN_DIR=$new kubeadm init phase etcd local --config "$c" --dry-run >/dev/null || return 1
	for f in "$m" "$new"; do grep -v -e '- --initial-cluster=' -e '- --initial-cluster-state=' "$f/etcd.yaml" | sha256sum; done | uniq | wc -l >"$new/differ"
	same=$(cat "$new/differ")
	rm -rf "$new"
	[ "$same" -eq 1 ]
}

# k_save_etcd: saves this member's database before another etcd reads it. Only the last copy is kept.
k_save_etcd() {
	self -n kube-system exec "etcd-$NODE" -- etcdctl --endpoints=https://127.0.0.1:2379 --cacert=/etc/kubernetes/pki/etcd/ca.crt \
		--cert=/etc/kubernetes/pki/etcd/server.crt --key=/etc/kubernetes/pki/etcd/server.key snapshot save "$ETCD_DIR/paictl-before.db" >&2
	mv -f "$R$ETCD_DIR/paictl-before.db" "$S/etcd-before-upgrade.db"
	chmod 600 "$S/etcd-before-upgrade.db"
}

# k_reconfigure HASH [apart]: applies changed settings to the static pods of this machine, etcd's first; with "apart", to the API server's
# before the others', since none may be newer than the API server.
# The caller sets ETCD_DIR, and API, the URL of the API for all machines.
k_reconfigure() {
	c=$R/etc/paictl/kubeadm.yaml
	# The working manifests are kept until the new ones have proved themselves, also across an interrupted attempt.
	if [ ! -d "$S/manifests" ]; then
		rm -rf "$S/manifests.new"
		(umask 077; mkdir "$S/manifests.new")
		cp -p "$R"/etc/kubernetes/manifests/*.yaml "$S/manifests.new/"
		for x in etcd kube-apiserver kube-controller-manager kube-scheduler; do k_pod_hash "$x" >"$S/manifests.new/$x.hash"; done
		mv "$S/manifests.new" "$S/manifests"
	fi
	k_name
	k_certificate apiserver etcd-server etcd-peer
	m=$R/etc/kubernetes/manifests
	if ! k_same_etcd; then
		if [ -n "${2-}" ] && cmp -s "$m/etcd.yaml" "$S/manifests/etcd.yaml"; then k_save_etcd; fi
		k_static "etcd local" etcd
	fi
	if [ -n "${2-}" ]; then
		k_static "control-plane apiserver" kube-apiserver
		k_static "control-plane all" kube-controller-manager kube-scheduler # that of the API server stays as it is
	else
		k_static "control-plane all" kube-apiserver kube-controller-manager kube-scheduler
	fi
	for x in admin.conf super-admin.conf; do k_server "$x" "$API"; done
	k_applied "$1"
	rm -rf "$S/manifests"
}

# k_upload updates the cluster's copy of the settings, CoreDNS and kube-proxy. The caller sets API.
k_upload() {
	c=$R/etc/paictl/kubeadm.yaml
	k_named '' >"$S/upload.yaml" # machines that become masters later get their certificates with it
	kubeadm init phase upload-config all --config "$S/upload.yaml" >&2
	rm -f "$S/upload.yaml"
	k_discovery "$API"
	kubeadm init phase addon all --config "$c" >&2
	self -n kube-system rollout restart daemonset/kube-proxy >&2
}

# k_upgraded RELEASE: runs kubeadm's step for a cluster whose API servers all have another release.
k_upgraded() { kubeadm upgrade apply phase bootstrap-token "$1" >&2; }

# k_join IGNORED-CHECKS HASH: joins the cluster with the configuration and its token on standard input (base64).
k_join() {
	f=$S/join.yaml
	(umask 077; base64 -d >"$f")
	k_ignored "$1"
	since=$(date +%s) code=0
	kubeadm join --config "$f" ${ignored:+--ignore-preflight-errors="$ignored"} >&2 || code=$?
	rm -f "$f"
	[ "$code" = 0 ] || { k_causes "$since"; exit "$code"; }
	[ -z "$2" ] || k_applied "$2"
	: >"$S/member"
	note change member
}

# k_ticket MORE: prints the data that machines need to join. The token is valid for an hour. With MORE 1 the
# certificates are stored in the cluster, encrypted, for further control plane machines.
k_ticket() {
	c=$R/etc/paictl/kubeadm.yaml
	if [ ! -f "$S/member" ] || [ ! -f "$KUBECONFIG" ]; then
		echo "the cluster doesn't exist yet, so no machine can join it -> run paictl cluster up without --limit and --phases first" >&2
		exit 1
	fi
	i=0
	until self get --raw /readyz --request-timeout=10s >/dev/null 2>&1; do
		i=$((i + 1))
		[ "$i" -lt 60 ] || { echo "the API server does not answer, so no machine can join; with several masters, more than half of them must run -> see paictl cluster status, and journalctl -u kubelet on the host" >&2; exit 1; }
		sleep 0.5
	done
	printf 'token\t%s\n' "$(kubeadm token create --ttl 1h --description 'made by paictl for one run')"
	printf 'ca\t%s\n' "$(base64 <"$R/etc/kubernetes/pki/ca.crt" | tr -d '\n')"
	self get configmap -n kube-system paictl-removed --ignore-not-found -o 'go-template={{range $k, $v := .data}}barred{{"\t"}}{{$k}}{{"\n"}}{{end}}'
	if [ "$1" = 1 ]; then
		key=$(head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n')
		# The key stays off the command line, which all users of the machine can read.
		(umask 077; sed "s/^kind: InitConfiguration\$/&\ncertificateKey: $key/" "$c" >"$S/certificate-key.yaml")
		code=0
		kubeadm init phase upload-certs --upload-certs --config "$S/certificate-key.yaml" >/dev/null || code=$?
		rm -f "$S/certificate-key.yaml"
		[ "$code" = 0 ] || exit "$code"
		printf 'certificate-key\t%s\n' "$key"
		printf 'encryption\t%s\n' "$(base64 <"$R/etc/paictl/encryption.yaml" | tr -d '\n')"
	fi
}
