package httpserver

import (
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/openpai/paictl/pkg/httpserver/clientaddr"
)

// shares is the number of parts into which the connections are divided. One network gets at most one part: many people may share an address, and
// other networks still have connections.
const shares = 4

// settled is how long a new connection is protected from being closed in favour of a network with fewer connections: a health check or a short
// response takes less.
const settled = 10 * time.Second

// Limit bounds the connections of a listener. Connections of a network above its share are closed. If all connections are open, the
// newest one of the network with the most is closed for a network with fewer. If that would leave both with as many, the oldest one is
// closed, but not before it has been open for a few seconds: as many networks as there are places can't keep health checks away.
func Limit(l net.Listener, o Options) net.Listener {
	return &shared{
		Listener: l, share: max(1, o.Connections/shares), proxies: o.Proxies, places: make(chan struct{}, o.Connections),
		ended: make(chan struct{}), open: map[string][]*part{},
	}
}

type shared struct {
	net.Listener
	share   int
	proxies []netip.Prefix
	places  chan struct{} // one element for each open connection
	end     sync.Once
	ended   chan struct{}

	mu   sync.Mutex
	open map[string][]*part // by network, oldest first; without connections that aren't counted
}

// Accept implements net.Listener.
func (s *shared) Accept() (net.Conn, error) {
	for {
		c, err := s.Listener.Accept()
		if err != nil {
			return nil, err
		}
		p := &part{Conn: c, of: s, began: time.Now()}
		p.network, p.counted = s.network(c.RemoteAddr())
		if s.full(p) {
			_ = c.Close() // no byte was sent yet
			continue
		}
		if !s.enter(p) {
			_ = c.Close()
			return nil, net.ErrClosed
		}
		s.add(p)
		return p, nil
	}
}

// enter waits for a place, and returns false if the listener closes.
func (s *shared) enter(p *part) bool {
	select {
	case s.places <- struct{}{}:
		return true
	default:
	}
	for {
		timer := time.NewTimer(s.makeRoom(p))
		select {
		case s.places <- struct{}{}:
			timer.Stop()
			return true
		case <-s.ended:
			timer.Stop()
			return false
		case <-timer.C:
		}
	}
}

// Close implements net.Listener.
func (s *shared) Close() error {
	s.end.Do(func() { close(s.ended) })
	return s.Listener.Close()
}

// network returns the network of an address. counted is false for proxies and for this machine, which have no share.
func (s *shared) network(a net.Addr) (name string, counted bool) {
	at, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return a.String(), true
	}
	address := at.Addr().Unmap()
	if address.IsLoopback() || slices.ContainsFunc(s.proxies, func(p netip.Prefix) bool { return p.Contains(address) }) {
		return "", false
	}
	return clientaddr.Network(address), true
}

// full reports whether the network of a new connection has used up its share.
func (s *shared) full(p *part) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return p.counted && len(s.open[p.network]) >= s.share
}

// makeRoom closes a connection in favour of a new one from a network with fewer, and returns how long to wait before
// the next attempt.
func (s *shared) makeRoom(p *part) time.Duration {
	s.mu.Lock()
	own := len(s.open[p.network])
	var most []*part
	var oldest *part
	for _, parts := range s.open {
		if len(parts) > len(most) {
			most = parts
		}
		if len(parts) > own && (oldest == nil || parts[0].began.Before(oldest.began)) {
			oldest = parts[0]
		}
	}
	again := settled
	var gives *part
	switch {
	case len(most) > own+1:
		gives = most[len(most)-1]
	case oldest != nil:
		if again = settled - time.Since(oldest.began); again <= 0 {
			gives, again = oldest, settled
		}
	}
	s.mu.Unlock()
	if gives != nil {
		_ = gives.Close()
	}
	return again
}

func (s *shared) add(p *part) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.counted {
		s.open[p.network] = append(s.open[p.network], p)
	}
}

func (s *shared) remove(p *part) {
	s.mu.Lock()
	if p.counted {
		s.open[p.network] = slices.DeleteFunc(s.open[p.network], func(other *part) bool { return other == p })
		if len(s.open[p.network]) == 0 {
			delete(s.open, p.network)
		}
	}
	s.mu.Unlock()
	<-s.places
}

// part is a connection of a network's share.
type part struct {
	net.Conn
	of      *shared
	network string
	counted bool
	began   time.Time
	once    sync.Once
}

// Close implements net.Conn, and makes room for another connection.
func (p *part) Close() error {
	err := p.Conn.Close()
	p.once.Do(func() { p.of.remove(p) })
	return err
}
