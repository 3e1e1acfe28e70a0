# p_endpoint HOST PORT: prints "endpoint" and "tls" if a server at that address answers the first message
# of a TLS handshake with its certificate (16) or with an alert (15), as any API server does, also
# through a load balancer. A load balancer without a machine behind it closes the connection. The
# machine has no kubectl yet, and may have no openssl.
p_endpoint() {
	said=$(timeout 10 bash -c '
		exec 3<>"/dev/tcp/$1/$2" || exit 1
		printf "\026\003\001\000\141\001\000\000\135\003\003paictl asks whether TLS is here.\
\000\000\026\023\001\023\002\023\003\300\053\300\057\300\054\300\060\314\251\314\
\250\000\234\000\057\001\000\000\036\000\012\000\006\000\004\000\027\000\030\000\
\013\000\002\001\000\000\015\000\012\000\010\004\003\004\005\010\004\004\001" >&3
		head -c 1 <&3 | od -An -tx1
	' endpoint "$1" "$2" 2>/dev/null) || said=
	case $said in *1[56]*) printf 'endpoint\ttls\n' ;; esac
}
