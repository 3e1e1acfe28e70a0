# The steps of "node remove" and of a join that run on the leader, for another node. The caller defines
# self, NODE, ADDRESS, LEADER (the machine's own node), FORCE (0, 1,
# or 2 for a dead machine), and SECONDS_MAX.

# r_drain cordons the node and moves its pods away. It prints "absent" if the cluster doesn't
# know the node, "drained", or "stuck" and then the remaining pods, for the caller to
# explain.
r_drain() {
	if ! out=$(self get node "$NODE" -o name --request-timeout=15s 2>&1); then
		case $out in
		*NotFound*)
			printf 'absent\n'
			return 0
			;;
		esac
		echo "the cluster's API does not answer: $out" | tr '\n' ' ' >&2
		exit 1
	fi
	self cordon "$NODE" >/dev/null
	r_take
	more=
	case $FORCE in
	# Without eviction, disruption budgets don't apply.
	1) more='--force --disable-eviction' ;;
	# A dead kubelet never reports the end of a pod, so the drain doesn't wait for it.
	2) more='--force --disable-eviction --grace-period=0' ;;
	esac
	# shellcheck disable=SC2086
	if out=$(self drain "$NODE" --ignore-daemonsets --delete-emptydir-data --timeout="${SECONDS_MAX}s" $more 2>&1); then
		printf 'drained\t%s\n' "$(printf '%s\n' "$out" | grep -c '^pod/.* evicted\|^pod/.* deleted\|^pod .* deleted' || true)"
		return 0
	fi
	printf 'stuck\t%s\n' "$(printf '%s\n' "$out" | grep -i '^error' | tail -n 1 | tr '\t' ' ' | cut -c1-400)"
	printf 'pods\t%s\n' "$(self get pods -A --field-selector "spec.nodeName=$NODE" -o json | base64 | tr -d '\n')"
	printf 'budgets\t%s\n' "$(self get poddisruptionbudgets -A -o json | base64 | tr -d '\n')"
}

# r_take: takes over the cordon of a policy of the alert handler, which would restart or uncordon the node while it is changed.
r_take() {
	by=$(self get node "$NODE" -o 'go-template={{with .metadata.annotations}}{{index . "paictl.openpai.org/cordoned-by"}}{{end}}')
	case $by in
	*'"kind":"policy"'*) self annotate node "$NODE" --overwrite paictl.openpai.org/cordoned-by- >/dev/null ;;
	esac
}

etcdctl_() {
	self -n kube-system exec "etcd-$LEADER" -- etcdctl --endpoints=https://127.0.0.1:2379 \
		--cacert=/etc/kubernetes/pki/etcd/ca.crt --cert=/etc/kubernetes/pki/etcd/server.crt \
		--key=/etc/kubernetes/pki/etcd/server.key "$@"
}

# r_member removes the node from etcd. Otherwise its quorum would still count a
# member that never votes.
r_member() {
	id=$(etcdctl_ member list | awk -F ', *' -v n="$NODE" -v u="//$ADDRESS:" '$3 == n || index($4, u) { print $1; exit }')
	if [ -z "$id" ]; then
		printf 'absent\n'
		return 0
	fi
	out=$(etcdctl_ member remove "$id" 2>&1) || {
		echo "etcd does not remove its member $NODE: $(printf '%s\n' "$out" | grep -v '^command terminated' | tail -n 1 | tr '\t' ' ' | cut -c1-300) -> see that the other masters run: paictl cluster status" >&2
		exit 1
	}
	printf 'removed\t%s\n' "$id"
}

# r_mirrors removes the node's static pods from the API: kubeadm checks the health of all
# members of etcd that it finds there.
r_mirrors() {
	self delete pods -n kube-system -l tier=control-plane --field-selector "spec.nodeName=$NODE" --grace-period=0 --force --ignore-not-found >/dev/null
}

# r_bar: keeps a machine out that may come back with its credentials. The policy is on standard input (base64).
r_bar() {
	base64 -d | self apply -f - >&2
	self get configmap -n kube-system paictl-removed >/dev/null 2>&1 || self create configmap -n kube-system paictl-removed >&2
	self patch configmap -n kube-system paictl-removed --type merge -p "{\"data\":{\"$NODE\":\"$(date -u +%Y-%m-%dT%H:%M:%SZ)\"}}" >&2
}

# r_admit: admits a machine that was kept out.
r_admit() { self patch configmap -n kube-system paictl-removed --type merge -p "{\"data\":{\"$NODE\":null}}" >&2; }

r_delete() { self delete node "$NODE" --ignore-not-found --timeout=60s >/dev/null; }

# r_unknown: removes the machine from the approver's list, so that no certificate is approved for its name and address.
r_unknown() {
	[ -n "$(self get configmap -n kube-system paictl-machines --ignore-not-found -o name)" ] || return 0
	self patch configmap -n kube-system paictl-machines --type merge -p "{\"data\":{\"$NODE\":null}}" >&2
}

# r_cordoned: prints the time from which the node is cordoned, by its taint, "now" if it has no taint yet, and "" if it isn't cordoned.
r_cordoned() {
	[ "$(self get node "$NODE" -o 'jsonpath={.spec.unschedulable}')" = true ] || return 0
	at=$(self get node "$NODE" -o 'jsonpath={.spec.taints[?(@.key=="node.kubernetes.io/unschedulable")].timeAdded}')
	printf %s "${at:-now}"
}

# r_mark: records, as the annotation MARK, that paictl cordons the node, unless someone has already cordoned it. The mark has the time of the taint
# that follows, so that it no longer counts once someone else has cordoned the node again.
r_mark() {
	if [ -n "$(r_cordoned)" ]; then
		r_take
		return 0
	fi
	self annotate node "$NODE" --overwrite "$MARK=now" >/dev/null
	self cordon "$NODE" >/dev/null
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		at=$(r_cordoned)
		case $at in now | '') sleep 0.5 ;; *) break ;; esac
	done
	self annotate node "$NODE" --overwrite "$MARK=${at:-now}" >/dev/null
}

# r_unmark: uncordons a node that has the mark, once it is Ready; with FRESH=1, its kubelet must also report first, since its last report may be from
# before a restart. The mark is removed last.
r_unmark() {
	marked=$(self get node "$NODE" -o "go-template={{with .metadata.annotations}}{{index . \"$MARK\"}}{{end}}")
	case $marked in '' | '<no value>') return 0 ;; esac
	at=$(r_cordoned)
	if [ -n "$at" ] && [ "$marked" != now ] && [ "$at" != now ] && [ "$marked" != "$at" ]; then
		self annotate node "$NODE" --overwrite "$MARK-" >/dev/null # someone else has cordoned it since
		return 0
	fi
	if [ "$FRESH" = 1 ]; then
		before=$(self -n kube-node-lease get lease "$NODE" -o 'jsonpath={.spec.renewTime}' 2>/dev/null || :)
		n=0
		while [ "$(self -n kube-node-lease get lease "$NODE" -o 'jsonpath={.spec.renewTime}' 2>/dev/null || :)" = "$before" ]; do
			n=$((n + 1))
			[ "$n" -lt 150 ] || {
				echo "the kubelet of $NODE doesn't report -> see paictl cluster status, and journalctl -u kubelet there" >&2
				exit 1
			}
			sleep 2
		done
	fi
	self wait --for=condition=Ready "node/$NODE" --timeout=300s >/dev/null 2>&1 || {
		echo "the node $NODE is not Ready -> see paictl cluster status" >&2
		exit 1
	}
	self uncordon "$NODE" >/dev/null
	self annotate node "$NODE" --overwrite "$MARK-" >/dev/null
	printf 'uncordoned\n'
}
