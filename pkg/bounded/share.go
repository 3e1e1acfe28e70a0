package bounded

import (
	"net"
	"net/netip"
	"slices"
	"sync"

	"github.com/openpai/paictl/pkg/origin"
)

// shares is the number of parts into which the connections are divided. One network has one part at most: a room full of people is behind
// one address, and still leaves a place to others.
const shares = 4

// Limit bounds the connections of a listener. A network that has its share is hung up on. If all connections are open, the newest one of
// the network with the most is closed for a network with fewer; if all have as many, the next one waits until a connection ends.
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
	open map[string][]*part // by network, in the order of their beginning; not those without a share
}

// Accept implements net.Listener.
func (s *shared) Accept() (net.Conn, error) {
	for {
		c, err := s.Listener.Accept()
		if err != nil {
			return nil, err
		}
		p := &part{Conn: c, of: s}
		p.network, p.counted = s.network(c.RemoteAddr())
		if s.full(p) {
			_ = c.Close() // no byte was sent yet
			continue
		}
		select {
		case s.places <- struct{}{}:
		default:
			s.makeRoom(p)
			select {
			case s.places <- struct{}{}:
			case <-s.ended:
				_ = c.Close()
				return nil, net.ErrClosed
			}
		}
		s.add(p)
		return p, nil
	}
}

// Close implements net.Listener.
func (s *shared) Close() error {
	s.end.Do(func() { close(s.ended) })
	return s.Listener.Close()
}

// network returns the network of an address. counted is false for addresses that stand for many, and for this machine: they have no share.
func (s *shared) network(a net.Addr) (name string, counted bool) {
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

// full reports whether the network of a new connection has its share.
func (s *shared) full(p *part) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return p.counted && len(s.open[p.network]) >= s.share
}

// makeRoom closes a connection of the network with the most, if that has two more than the network of a new connection.
func (s *shared) makeRoom(p *part) {
	s.mu.Lock()
	var most []*part
	for _, parts := range s.open {
		if len(parts) > len(most) {
			most = parts
		}
	}
	var last *part
	if len(most) > len(s.open[p.network])+1 {
		last = most[len(most)-1]
	}
	s.mu.Unlock()
	if last != nil {
		_ = last.Close()
	}
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
	once    sync.Once
}

// Close implements net.Conn, and makes room for another connection.
func (p *part) Close() error {
	err := p.Conn.Close()
	p.once.Do(func() { p.of.remove(p) })
	return err
}
