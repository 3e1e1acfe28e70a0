package httpserver

import (
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/openpai/paictl/pkg/httpserver/clientaddr"
)

// shares is the number of parts into which the connections are divided. One network gets at most one part. A part is large because many people
// may share an address, and small enough that other networks still have connections.
const shares = 4

// settled is how long a new connection can't be closed in favor of a network with fewer connections. A health check and a short response take
// less time.
const settled = 10 * time.Second

// Limit returns a listener that bounds its connections. It closes a new connection if the network of the client has used up its share. If all
// connections are open, it closes one for a network with fewer connections: the newest connection of the network with the most. If the two
// networks would then have equally many, it closes the oldest connection of a network with more connections instead, once that connection has
// been open for the time settled. So even if every connection belongs to a different network, health checks still get through.
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

// Accept implements net.Listener. It closes connections of networks that have used up their share.
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

// enter waits until the new connection has a place. It returns false if the listener closes.
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

// network returns the name of the network of an address. counted is false for proxies and for this machine, whose connections don't count towards
// a share.
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

// makeRoom closes a connection in favor of a new connection from a network with fewer connections, if there is one to close. It returns how long
// to wait before the next attempt.
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

// part is a connection that counts towards the share of its network, unless counted is false.
type part struct {
	net.Conn
	of      *shared
	network string
	counted bool
	began   time.Time
	once    sync.Once
}

// Close implements net.Conn, and frees the place of the connection.
func (p *part) Close() error {
	err := p.Conn.Close()
	p.once.Do(func() { p.of.remove(p) })
	return err
}
