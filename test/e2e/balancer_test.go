package e2e

import (
	"io"
	"net"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
)

// balance starts a TCP load balancer on this machine, and returns the balancer's address. The balancer listens at the address of the sandbox's
// bridge, and forwards connections to the API servers of the first hosts. It tries the hosts in turn, and skips a host that rejects the connection.
func (l *lab) balance(hosts int) string {
	l.t.Helper()
	var backends []string
	for i := range hosts {
		backends = append(backends, l.address(i)+":6443")
	}
	gateway := l.address(0)
	gateway = gateway[:strings.LastIndex(gateway, ".")] + ".1"
	listener, err := net.Listen("tcp", gateway+":6443")
	require.NoError(l.t, err)
	l.t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for turn := 0; ; turn++ {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go forward(conn, backends, turn)
		}
	}()
	return gateway
}

func forward(conn net.Conn, backends []string, turn int) {
	defer conn.Close()
	for i := range backends {
		up, err := net.DialTimeout("tcp", backends[(turn+i)%len(backends)], 2*time.Second)
		if err != nil {
			continue
		}
		defer up.Close()
		go func() {
			_, _ = io.Copy(up, conn)
			_ = up.Close()
		}()
		_, _ = io.Copy(conn, up)
		return
	}
}
