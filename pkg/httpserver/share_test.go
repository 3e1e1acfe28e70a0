package httpserver

import (
	"errors"
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// callers is a listener that accepts a connection from each address in from, one after another.
type callers struct {
	from   []string
	hungUp []string
}

func (c *callers) Addr() net.Addr { return &net.TCPAddr{} }

func (c *callers) Close() error { return nil }

var errNoMore = errors.New("no one calls")

func (c *callers) Accept() (net.Conn, error) {
	if len(c.from) == 0 {
		return nil, errNoMore
	}
	from := c.from[0]
	c.from = c.from[1:]
	return &call{list: c, from: from}, nil
}

type call struct {
	net.Conn
	list *callers
	from string
}

func (c *call) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(c.from), 4000))
}

func (c *call) Close() error {
	c.list.hungUp = append(c.list.hungUp, c.from)
	return nil
}

func TestOneNetworkHoldsAQuarterOfTheConnectionsAtMost(t *testing.T) {
	for name, c := range map[string]struct{ mine, alsoMine, other string }{
		"IPv4":                  {"192.0.2.1", "::ffff:192.0.2.1", "192.0.2.2"},
		"IPv6, with all of /64": {"2001:db8::1", "2001:db8::ffff:2", "2001:db8:0:1::1"},
	} {
		t.Run(name, func(t *testing.T) {
			in := &callers{from: []string{c.mine, c.alsoMine, c.mine, c.alsoMine, c.other}}
			l := Limit(in, Options{Connections: 8})
			var open []net.Conn
			for range 3 {
				conn, err := l.Accept()
				require.NoError(t, err)
				open = append(open, conn)
			}
			assert.Equal(t, []string{c.mine, c.alsoMine}, in.hungUp, "two of eight are its share")
			assert.Equal(t, c.other, open[2].(*part).Conn.RemoteAddr().(*net.TCPAddr).AddrPort().Addr().Unmap().String())

			require.NoError(t, open[0].Close())
			require.NoError(t, open[0].Close(), "a second time gives back nothing")
			in.from, in.hungUp = []string{c.mine, c.mine, c.other}, nil
			for range 2 {
				_, err := l.Accept()
				require.NoError(t, err)
			}
			assert.Equal(t, []string{c.mine}, in.hungUp)
			_, err := l.Accept()
			require.ErrorIs(t, err, errNoMore)
		})
	}
}

// All users may connect through a trusted proxy, which may run on this machine. So a proxy's connections don't count towards a share.
func TestATrustedProxyHasNoShare(t *testing.T) {
	in := &callers{}
	for i := range 8 {
		in.from = append(in.from, []string{"::ffff:10.0.0.1", "127.0.0.1"}[i%2])
	}
	l := Limit(in, Options{Connections: 8, Proxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}})
	for range 8 {
		_, err := l.Accept()
		require.NoError(t, err)
	}
	assert.Empty(t, in.hungUp)
}

// Even if every connection belongs to a different network and is idle, connections from other networks are still accepted.
func TestTheOldestConnectionGivesWayToANetworkWithNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := &callers{from: []string{"192.0.2.1", "192.0.2.2", "192.0.2.3", "127.0.0.1"}}
		l := Limit(in, Options{Connections: 2})
		began := time.Now()
		_, err := l.Accept()
		require.NoError(t, err)
		time.Sleep(time.Second)
		_, err = l.Accept()
		require.NoError(t, err)
		time.Sleep(time.Second)

		_, err = l.Accept()
		require.NoError(t, err)
		assert.Equal(t, []string{"192.0.2.1"}, in.hungUp)
		assert.Equal(t, settled, time.Since(began), "a short answer can be finished")
		_, err = l.Accept()
		require.NoError(t, err, "this machine, whose health checks have no share")
		assert.Equal(t, []string{"192.0.2.1", "192.0.2.2"}, in.hungUp)
		assert.Equal(t, settled+time.Second, time.Since(began))
	})
}
