#!/bin/sh
# Written by paictl. Turns the subnet that flannel was given into the configuration of the
# standard CNI plugins.
set -eu
env=/run/flannel/subnet.env
conf=/etc/cni/net.d/10-paictl-flannel.conflist
[ -s "$env" ] || exit 0
FLANNEL_NETWORK='' FLANNEL_SUBNET='' FLANNEL_MTU=1450
while IFS='=' read -r k v; do
	case $k in
	FLANNEL_NETWORK) FLANNEL_NETWORK=$v ;;
	FLANNEL_SUBNET) FLANNEL_SUBNET=$v ;;
	FLANNEL_MTU) FLANNEL_MTU=$v ;;
	esac
done <"$env"
[ -n "$FLANNEL_NETWORK" ] && [ -n "$FLANNEL_SUBNET" ] || exit 0
# flannel gives the subnet with the bridge's address, its first (10.1.2.1/24); the plugin
# wants the network's own (10.1.2.0/24).
address=${FLANNEL_SUBNET%/*}
subnet=${address%.*}.$((${address##*.} - 1))/${FLANNEL_SUBNET#*/}
mkdir -p /etc/cni/net.d
cat >"$conf.new" <<EOF
{
  "cniVersion": "1.0.0",
  "name": "paictl-flannel",
  "plugins": [
    {
      "type": "bridge",
      "bridge": "cni0",
      "mtu": $FLANNEL_MTU,
      "isDefaultGateway": true,
      "hairpinMode": true,
      "ipMasq": false,
      "ipam": {
        "type": "host-local",
        "ranges": [[{"subnet": "$subnet"}]],
        "routes": [{"dst": "$FLANNEL_NETWORK"}]
      }
    },
    {"type": "portmap", "capabilities": {"portMappings": true}}
  ]
}
EOF
if cmp -s "$conf.new" "$conf"; then
	rm -f "$conf.new"
else
	mv -f "$conf.new" "$conf"
fi
