package tls

import (
	"net"
	"net/netip"
	"slices"
	"sync"

	"golang.org/x/net/netutil"

	"github.com/openpai/paictl/pkg/origin"
)

// shares is into how many parts the connections are divided of which one network has one at most: a room full of people is behind one address,
// and still leaves others a place.
const shares = 4

// Bounds are how many connections there may be at a time.
type Bounds struct {
	Most int
	// Proxies are networks whose addresses stand for many others. They have no share, as this machine itself has none: all may come through one
	// of them.
	Proxies []netip.Prefix
}

// Limit bounds the connections of a listener. Where all are open others wait until one ends; who has their share open already is hung up on.
func Limit(l net.Listener, b Bounds) net.Listener {
	return &shared{Listener: netutil.LimitListener(l, b.Most), most: max(1, b.Most/shares), proxies: b.Proxies, open: map[string]int{}}
}

type shared struct {
	net.Listener
	most    int
	proxies []netip.Prefix

	mu   sync.Mutex
	open map[string]int // by network
}

// Accept implements net.Listener.
func (s *shared) Accept() (net.Conn, error) {
	for {
		c, err := s.Listener.Accept()
		if err != nil {
			return nil, err
		}
		network, bounded := s.network(c.RemoteAddr())
		if !bounded {
			return c, nil
		}
		if s.take(network) {
			return &part{Conn: c, end: sync.OnceFunc(func() { s.give(network) })}, nil
		}
		_ = c.Close() // it has been told nothing yet
	}
}

// network is what an address counts as; bounded is false where it stands for many, or for this machine.
func (s *shared) network(a net.Addr) (name string, bounded bool) {
	at, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return a.String(), true
	}
	address := at.Addr().Unmap()
	if address.IsLoopback() || slices.ContainsFunc(s.proxies, func(p netip.Prefix) bool { return p.Contains(address) }) {
		return "", false
	}
	return origin.Network(address), true
}

func (s *shared) take(network string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[network] >= s.most {
		return false
	}
	s.open[network]++
	return true
}

func (s *shared) give(network string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[network]--; s.open[network] == 0 {
		delete(s.open, network)
	}
}

// part is a connection of a network's share.
type part struct {
	net.Conn
	end func()
}

// Close ends it, and gives back its place.
func (p *part) Close() error {
	defer p.end()
	return p.Conn.Close()
}
