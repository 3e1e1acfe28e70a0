package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/openpai/paictl/pkg/cluster/peer"
	"github.com/openpai/paictl/pkg/cluster/shell"
	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/ssh"
)

// bringing transfers the files that a machine needs in one phase.
type bringing struct {
	p     *Peers
	n     *Node
	phase string
	total int64

	mu    sync.Mutex
	wants []ssh.Missing // neither present nor being transferred
	done  int64
	told  int64
}

// all copies files to the machine, from paictl or from other machines. When all returns, the list wants contains the files that paictl must still
// send.
func (b *bringing) all(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for range getsAtOnce {
		group.Go(func() error {
			for {
				t, more, err := b.take(ctx)
				if err != nil || !more {
					return err
				}
				if t.from == nil {
					err = b.send(ctx, t)
				} else {
					err = b.fetch(ctx, t)
				}
				if err != nil {
					return err
				}
			}
		})
	}
	return group.Wait()
}

// take waits for the next transfer to the machine. The second result is false when no further transfer is left.
func (b *bringing) take(ctx context.Context) (t transfer, more bool, err error) {
	for {
		b.mu.Lock()
		if len(b.wants) == 0 {
			b.mu.Unlock()
			return t, false, nil
		}
		t, ok, wait := b.p.copies.next(b.n.Hostname, b.wants)
		if ok {
			b.wants = slices.DeleteFunc(b.wants, func(f ssh.Missing) bool { return f.Path == t.file.Path })
		}
		b.mu.Unlock()
		if ok || wait == nil {
			return t, ok, nil
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return t, false, context.Cause(ctx)
		}
	}
}

func (b *bringing) want(f ssh.Missing) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.wants = append(b.wants, f)
}

func (b *bringing) send(ctx context.Context, t transfer) error {
	r := b.p.r
	began := r.Opts.Clock()
	took, end := b.watch(t, began)
	var before int64
	res, err := r.Host(b.n).Upload(ctx, []ssh.File{t.file.File}, func(sent, total int64) {
		took(sent, total)
		b.progress("upload", sent-before)
		before = sent
	})
	end()
	r.Sent.Add(res.Bytes)
	shared := false
	if err == nil {
		b.p.prove(res.Bytes, began)
		share := fmt.Sprintf("pp_share %s %s %s\n", shell.Quote(r.Id), t.file.SHA256, shell.Quote(t.file.Path))
		res, shareErr := r.Host(b.n).Run(ctx, ssh.Script{Name: PhasePeer + "/share", Mutates: true, Body: PreludeScript + peerScript + share})
		shared = shareErr == nil && res.ExitCode == 0 // after a failure, other machines get the file from another holder
	}
	b.p.copies.sent(b.n.Hostname, t, err == nil, shared)
	return err
}

// watch prevents a slow machine from delaying other machines. A slow machine occupies one of the few slots for files that paictl sends, and watch
// frees that slot. The caller calls took with the number of bytes sent so far, and calls end when the transfer is complete.
func (b *bringing) watch(t transfer, began time.Time) (took func(sent, total int64), end func()) {
	now, w := b.p.r.Opts.Clock, newPace(b.p.patience, began)
	var mu sync.Mutex
	look := func() bool {
		mu.Lock()
		defer mu.Unlock()
		at := now()
		slow, fast := w.look(at)
		return b.p.copies.look(b.n.Hostname, t, slow, fast, at, w.recent())
	}
	done := make(chan struct{})
	go func() {
		tick := time.NewTicker(w.looks())
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
			}
			if look() {
				b.p.warn("slow", b.n, "it receives files from here too slowly: other machines don't wait for it", "check its network and its disk")
				return
			}
		}
	}()
	return func(sent, total int64) {
		mu.Lock()
		defer mu.Unlock()
		w.took(sent, total, now())
	}, func() { close(done) }
}

// fetch copies a file to this machine from another machine. It returns an error only if the run must skip this machine.
func (b *bringing) fetch(ctx context.Context, t transfer) error {
	p, from := b.p, t.from.name
	said := &words{got: func(n int64) { b.progress("from "+from, n) }}
	err := b.command(ctx, t, said)
	if err != nil && (IsCancel(ctx, err) || errors.Is(err, ssh.ErrClosed)) {
		p.copies.fetched(b.n.Hostname, t, peer.Disk, false)
		return err
	}
	w := said.last
	if err == nil && !w.Done && w.Failure == "" {
		err = fmt.Errorf("%s on %s did not report how it ended", PeerProgram, b.n.Hostname)
	}
	if err != nil {
		// This machine has a local fault, but it can still receive files from paictl.
		p.copies.fetched(b.n.Hostname, t, peer.Disk, false)
		p.copies.setAlone(b.n.Hostname)
		b.want(t.file)
		p.warn("program", b.n, err.Error(), "it gets its files from here; see what the machine says in the error")
		return nil
	}
	p.r.Passed.Add(said.sum)
	if w.Done {
		p.copies.fetched(b.n.Hostname, t, "", w.Shared)
		return nil
	}
	b.progress("from "+from, -said.sum)
	if w.Failure == peer.Disk {
		p.copies.fetched(b.n.Hostname, t, w.Failure, false)
		return hint.Errorf("check the free space of the machine's disks", "get %s to %s: %s", t.file.Path, b.n.Hostname, w.Error)
	}
	b.want(t.file)
	b.judge(t, w, p.copies.fetched(b.n.Hostname, t, w.Failure, false))
	return nil
}

func (b *bringing) judge(t transfer, w peer.Message, v verdict) {
	p, from := b.p, t.from.name
	if w.Failure == peer.Wrong {
		p.r.Emit(Event{Kind: EventWarning, Host: b.n.Hostname, Phase: b.phase, Message: fmt.Sprintf("%s got wrong content from %s and has thrown it away: %s", t.file.Path, from, w.Error),
			Hint: "check the disk and memory of " + from + ", and who else can log in there"})
	}
	const remedy = "open TCP port %d between the machines, or use --no-peers"
	switch v {
	case offAll:
		p.warn("network", b.n, fmt.Sprintf("machines don't reach each other: all files are sent from here (%s: %s)", from, w.Error), fmt.Sprintf(remedy, config.PeerPort))
	case apart:
		p.warn("network", b.n, fmt.Sprintf("it can't get files from other machines, so its files are sent from here (%s: %s)", from, w.Error), fmt.Sprintf(remedy, config.PeerPort))
	case dropped:
		p.warn("dropped "+from, b.n, fmt.Sprintf("%s serves no files to others any longer (%s)", from, w.Error), "")
	}
}

func (b *bringing) command(ctx context.Context, t transfer, said *words) error {
	what := peer.Fetching{
		From: t.from.ready, Token: b.p.token, SHA256: t.file.SHA256, Size: t.file.Size, Mode: t.file.Mode,
		Path: t.file.Path, Part: t.file.Part, Folder: b.p.folder(), Patience: b.p.patience,
	}
	body, err := b.p.body(`"$S/peer-`+b.p.r.Id+`/`+PeerProgram+`" fetch "$R"`, what)
	if err != nil {
		return err
	}
	s := ssh.Script{Name: PhasePeer + "/fetch", Mutates: true, Stdout: said, Body: body, Timeout: what.Limit() + time.Minute}
	res, err := b.p.r.Host(b.n).Run(ctx, s)
	if err == nil && res.ExitCode != 0 {
		err = ScriptError(b.n, s.Name, res)
	}
	return err
}

// progress adds n to the number of bytes that have arrived, and emits an event after every percent. n is negative for bytes that must be sent again.
func (b *bringing) progress(what string, n int64) {
	b.mu.Lock()
	b.done += n
	done := min(b.done, b.total)
	tell := done-b.told >= b.total/100 || done == b.total
	if tell {
		b.told = done
	}
	b.mu.Unlock()
	if tell {
		b.p.r.Emit(Event{Kind: EventProgress, Host: b.n.Hostname, Phase: b.phase, Message: what, Done: done, Total: b.total})
	}
}

// words parses the output of the peer program line by line.
type words struct {
	got  func(n int64)
	buf  []byte
	last peer.Message
	sum  int64
}

// longestWord is the maximum length of a line in bytes, because the output of a machine isn't trustworthy.
const longestWord = 64 << 10

func (w *words) Write(b []byte) (int, error) {
	w.buf = append(w.buf, b...)
	for {
		i := bytes.IndexByte(w.buf, '\n')
		if i < 0 {
			if len(w.buf) > longestWord {
				return 0, errors.New("a line is too long")
			}
			return len(b), nil
		}
		var said peer.Message
		if err := json.Unmarshal(w.buf[:i], &said); err != nil {
			return 0, fmt.Errorf("unexpected answer %.100q", strings.TrimSpace(string(w.buf[:i])))
		}
		w.buf, w.last = w.buf[i+1:], said
		if said.Got > w.sum {
			w.got(said.Got - w.sum)
			w.sum = said.Got
		}
	}
}
