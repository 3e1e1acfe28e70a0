package e2e

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// client runs on a machine, and uses the same address of the API server as the machine's kubelet. About once a second, it writes a value to the API
// and reads it back.
type client struct {
	t    testing.TB
	lab  *lab
	host string
	mark int // lines of its log to skip
}

// client starts a client on a host, which doesn't need to have the administrator's kubeconfig.
func (l *lab) client(host int) *client {
	l.t.Helper()
	return l.clientWith(host, l.on(l.names[0], "cat /etc/kubernetes/admin.conf"))
}

// clientWith starts a client that uses a kubeconfig.
func (l *lab) clientWith(host int, conf string) *client {
	l.t.Helper()
	c := &client{t: l.t, lab: l, host: l.names[host]}
	l.on(c.host, "umask 077; cat >/root/client.conf <<'EOF'\n"+conf+"\nEOF\n"+`
cat >/root/client.sh <<'EOF'
export KUBECONFIG=/root/client.conf
n=0
while [ -e /root/client.run ]; do
	n=$((n + 1))
	if kubectl patch configmap kept --request-timeout=5s -p "{\"data\":{\"n\":\"$n\"}}" >/dev/null 2>>/root/client.err &&
		[ "$(kubectl get configmap kept --request-timeout=5s -o 'jsonpath={.data.n}' 2>>/root/client.err)" = $n ]; then
		date +%s.%N >>/root/client.log
	fi
	sleep 0.5
done
EOF
touch /root/client.run
: >/root/client.log
setsid sh /root/client.sh </dev/null >/dev/null 2>&1 &
`)
	return c
}

// begins waits until the client has succeeded again. gap then ignores the earlier part of the log.
func (c *client) begins() {
	c.t.Helper()
	c.mark = len(c.successes())
	eventually(c.t, 2*time.Minute, "the client reaches the API", func() bool { return len(c.successes()) > c.mark+2 })
}

// gap returns the longest time between two successes since begins, in seconds.
func (c *client) gap() float64 {
	c.t.Helper()
	times := c.successes()
	longest := 0.0
	for i := max(c.mark, 1); i < len(times); i++ {
		longest = max(longest, times[i]-times[i-1])
	}
	now, err := strconv.ParseFloat(strings.TrimSpace(c.lab.on(c.host, "date +%s.%N")), 64)
	require.NoError(c.t, err)
	if n := len(times); n > 0 {
		longest = max(longest, now-times[n-1])
	}
	return longest
}

func (c *client) ends() {
	c.t.Helper()
	c.lab.on(c.host, "rm -f /root/client.run /root/client.conf")
}

// successes returns the times at which the client has read back the value that it had written, in seconds.
func (c *client) successes() []float64 {
	c.t.Helper()
	var out []float64
	for _, f := range strings.Fields(c.lab.on(c.host, "cat /root/client.log")) {
		at, err := strconv.ParseFloat(f, 64)
		require.NoError(c.t, err)
		out = append(out, at)
	}
	return out
}
