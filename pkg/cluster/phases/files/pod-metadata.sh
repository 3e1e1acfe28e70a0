#!/bin/sh
# Written by paictl. Closes a cloud's metadata service to pods, or opens it: the service gives the machine's
# credentials to any client. Port 80 only: some clouds have their DNS server at the same address.
#
#   pod-metadata close|open
#
# Requests that the machine forwards are refused, from any source: a pod's request that is routed through
# another machine has that machine's address. The machine's own requests are allowed.
set -eu
itself=8109 refused=8110 end=8111
for preference in $itself $refused $end; do
	while ip -4 rule del preference "$preference" 2>/dev/null; do :; done
done
[ "$1" = close ] || exit 0
# When systemd-networkd starts, it removes rules that it doesn't know, except those of the protocol "kernel".
ip -4 rule add preference $end protocol kernel nop
for address in 169.254.169.254 100.100.100.200; do
	ip -4 rule add preference $itself iif lo to $address ipproto tcp dport 80 protocol kernel goto $end
	ip -4 rule add preference $refused to $address ipproto tcp dport 80 protocol kernel prohibit
done
