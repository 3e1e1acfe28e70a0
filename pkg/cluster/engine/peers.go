package engine

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	mrand "math/rand/v2"
	"net"
	"net/netip"
	"os"
	"path"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/openpai/paictl/pkg/cluster/bundle"
	"github.com/openpai/paictl/pkg/cluster/peer"
	"github.com/openpai/paictl/pkg/cluster/shell"
	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/ssh"
	"github.com/openpai/paictl/pkg/ui/plural"
)

// Names and limits of the transfers between machines.
const (
	PeerProgram = "pai-peer"
	// fewMachines is the number of machines below which paictl sends all files itself. For so few machines, it would send all copies in any case.
	fewMachines = ownCopies + 1
	// worthSharing is the minimum number of missing bytes for transfers between machines. The peer program, which a machine then needs, has a third of
	// this size.
	worthSharing = 8 << 20
	// servesFor is the time after which a machine stops serving files, even if it doesn't detect the end of the connection.
	servesFor = 2 * time.Hour
	PhasePeer = "peer"
)

//go:embed scripts/peer.sh
var peerScript string

// Peers manages the transfers of files between the machines of a run. Machines serve only files of the bundle.
type Peers struct {
	r      *Run
	copies *copies
	token  string
	Sums   []string // hashes of the files that machines may request
	// program is the artifact of the peer program. packed is the program in the compressed form that paictl sends.
	program bundle.Artifact
	packed  []byte
	// patience holds the timeouts of transfers between machines.
	patience peer.Patience

	mu       sync.Mutex
	joining  map[*Node]*sync.Once
	sessions []ssh.Session
	warned   map[string]bool
}

// Traffic counts the bytes of the files that machines have received in a run.
type Traffic struct {
	// Sent counts bytes from the operator's machine. Passed counts bytes between machines.
	Sent   int64 `json:"sent"`
	Passed int64 `json:"passed"`
}

// Carrier is a phase that copies files from the bundle to a machine.
type Carrier interface {
	// Carries returns the files that a machine needs for its changes.
	Carries(n *Node, w *World, cs []Change) []bundle.Artifact
}

// Sources returns the artifacts in the bundle for the artifacts on a node.
func Sources(as []Artifact) []bundle.Artifact {
	out := make([]bundle.Artifact, len(as))
	for i, a := range as {
		out[i] = a.Src
	}
	return out
}

// Share enables the transfers between machines if enough machines need enough data. It emits an event with the number of bytes that paictl will send.
func (r *Run) Share(p *Plan, nodes []*Node) error {
	if r.Opts.NoPeers || r.peers != nil || r.Spec.Bundle == nil {
		return nil
	}
	many, all, own := r.cargo(p, nodes)
	if many < fewMachines {
		return nil
	}
	program, ok := r.Spec.Bundle.Lookup(bundle.KindBinary, PeerProgram)
	if !ok {
		r.Emit(Event{Kind: EventWarning, Message: "the bundle has no " + PeerProgram + ": all files are sent from here to each machine",
			Hint: "make the bundle again with this paictl: paictl bundle build"})
		return nil
	}
	packed, err := pack(r.Spec.Bundle.File(program))
	if err != nil {
		return err
	}
	r.Emit(Event{Kind: EventNote, Message: fmt.Sprintf("files for %s, %s: at most %s go from here, the rest from machine to machine (TCP port %d)",
		plural.Of(many, "machine"), megabytes(all), megabytes(own+int64(many)*int64(len(packed))), config.PeerPort)})
	if r.Opts.DryRun {
		return nil
	}
	r.peers = &Peers{r: r, copies: newCopies(mrand.IntN), token: rand.Text() + rand.Text(), program: program, packed: packed,
		patience: r.Opts.Patience.WithDefaults(), joining: map[*Node]*sync.Once{}, warned: map[string]bool{}}
	for _, a := range r.Spec.Bundle.List("") {
		r.peers.Sums = append(r.peers.Sums, a.SHA256)
	}
	slices.Sort(r.peers.Sums)
	return nil
}

// cargo returns the number of machines with enough missing data for sharing, the total size of the files for all machines, and the size of the files
// that paictl sends itself.
func (r *Run) cargo(p *Plan, nodes []*Node) (many int, all, own int64) {
	times := map[string]int{}
	for _, n := range nodes {
		var size int64
		seen := map[string]bool{}
		for _, ph := range p.Phases {
			c, ok := ph.(Carrier)
			cs := p.Of(n, ph.Name())
			if !ok || len(cs) == 0 {
				continue
			}
			for _, a := range c.Carries(n, p.World, cs) {
				if seen[a.SHA256] {
					continue
				}
				seen[a.SHA256] = true
				size += a.Size
				if times[a.SHA256]++; times[a.SHA256] <= ownCopies {
					own += a.Size
				}
			}
		}
		if size >= worthSharing {
			many++
		}
		all += size
	}
	return many, all, own
}

func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }

func pack(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := io.Copy(z, f); err != nil {
		return nil, err
	}
	err = z.Close() // it writes the remaining data
	return out.Bytes(), err
}

func (p *Peers) close() {
	p.mu.Lock()
	sessions := p.sessions
	p.sessions = nil
	p.mu.Unlock()
	var wg sync.WaitGroup
	for _, s := range sessions {
		wg.Go(func() { _ = s.Close() }) // a machine that lost the connection has already ended its session
	}
	wg.Wait()
}

// Serves reports whether machines may serve a file. Machines may serve only files of the bundle.
func (p *Peers) Serves(f ssh.File) bool {
	_, listed := slices.BinarySearch(p.Sums, f.SHA256)
	return listed
}

// bring copies files to a machine, if possible from other machines.
func (p *Peers) bring(ctx context.Context, n *Node, phase string, files []ssh.File) error {
	if size(files) < worthSharing || !slices.ContainsFunc(files, p.Serves) {
		return p.r.send(ctx, n, phase, files)
	}
	missing, err := p.r.Host(n).Missing(ctx, files)
	if err != nil {
		return err
	}
	var own []ssh.File
	b := &bringing{p: p, n: n, phase: phase}
	for _, f := range missing {
		if p.Serves(f.File) {
			b.wants = append(b.wants, f)
			b.total += f.Size
		} else {
			own = append(own, f.File)
		}
	}
	if b.total >= worthSharing && p.join(ctx, n) {
		if err := b.all(ctx); err != nil {
			return err
		}
	}
	for _, f := range b.wants { // the files that the machine has to get from paictl
		own = append(own, f.File)
	}
	return p.r.send(ctx, n, phase, own)
}

func size(files []ssh.File) int64 {
	var n int64
	for _, f := range files {
		n += f.Size
	}
	return n
}

// join starts the peer program on a machine once, and reports whether the machine takes part in the transfers. If the start fails, join emits a
// warning, and paictl sends the machine's files.
func (p *Peers) join(ctx context.Context, n *Node) bool {
	p.mu.Lock()
	once := p.joining[n]
	if once == nil {
		once = &sync.Once{}
		p.joining[n] = once
	}
	p.mu.Unlock()
	once.Do(func() {
		if err := p.start(ctx, n); err != nil && !IsCancel(ctx, err) && !errors.Is(err, ssh.ErrClosed) {
			p.warn("start", n, "it passes no files on to other machines: "+err.Error(), cmp.Or(hint.Of(err), "see what the machine says in the error; --no-peers sends everything from here"))
		}
	})
	return !p.copies.alone(n.Hostname)
}

// warn emits only the first warning of each kind, because further warnings of the same kind would add no information.
func (p *Peers) warn(kind string, n *Node, message, remedy string) {
	p.mu.Lock()
	known := p.warned[kind]
	p.warned[kind] = true
	p.mu.Unlock()
	if !known {
		p.r.Emit(Event{Kind: EventWarning, Host: n.Hostname, Message: message, Hint: remedy})
	}
}

func (p *Peers) start(ctx context.Context, n *Node) error {
	h := p.r.Host(n)
	sum, began := Hash(p.packed), p.r.Opts.Clock()
	res, err := h.Upload(ctx, []ssh.File{{
		Path: path.Join(StateDir, "staging", sum), Mode: 0o600, SHA256: sum, Size: int64(len(p.packed)),
		Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(p.packed)), nil },
	}}, nil)
	p.r.Sent.Add(res.Bytes)
	if err != nil {
		return err
	}
	p.prove(res.Bytes, began)
	what := peer.Serving{Address: net.JoinHostPort(n.HostIP, strconv.Itoa(config.PeerPort)), Token: p.token, Folder: p.folder(), Files: p.Sums, Seconds: int(servesFor.Seconds())}
	body, err := p.body(fmt.Sprintf("pp_serve %s %s %s", shell.Quote(p.r.Id), sum, p.program.SHA256), what)
	if err != nil {
		return err
	}
	s, err := h.Hold(ctx, ssh.Script{Name: PhasePeer + "/serve", Mutates: true, Timeout: time.Minute, Body: body})
	if err != nil {
		return err
	}
	var ready peer.Ready
	err = json.Unmarshal([]byte(s.FirstLine()), &ready)
	// The machine chooses only its port. If it could choose the address, it could make other machines connect to another host.
	at, addressErr := netip.ParseAddrPort(ready.Address)
	if err != nil || addressErr != nil || at.Addr().String() != n.HostIP {
		_ = s.Close()
		return fmt.Errorf("%s on %s: unexpected answer %.200q", PeerProgram, n.Hostname, s.FirstLine())
	}
	p.mu.Lock()
	p.sessions = append(p.sessions, s)
	p.mu.Unlock()
	p.copies.join(n.Hostname, ready)
	go func() {
		<-s.Done()
		p.copies.leave(n.Hostname)
	}()
	return nil
}

// enoughProof is the number of bytes that a machine must have received before its speed counts.
const enoughProof = 1 << 20

// prove records the current time if a machine received its data at the required rate.
func (p *Peers) prove(sent int64, began time.Time) {
	now := p.r.Opts.Clock()
	if sent >= enoughProof && float64(sent) >= float64(p.patience.Rate)*now.Sub(began).Seconds() {
		p.copies.prove(now)
	}
}

func (p *Peers) folder() string { return path.Join(StateDir, "peer-"+p.r.Id) }

// body returns a script whose last command reads JSON from file descriptor 3. Other users can read the arguments of a program, but not its input.
func (p *Peers) body(command string, what any) (string, error) {
	b, err := json.Marshal(what)
	if err != nil {
		return "", err
	}
	return PreludeScript + peerScript + command + " 3<<'PAICTL_DATA'\n" + string(b) + "\nPAICTL_DATA\n", nil
}
