package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"

	"github.com/openpai/paictl/pkg/cluster/backup"
	"github.com/openpai/paictl/pkg/cluster/bundle"
	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/cluster/peer"
	"github.com/openpai/paictl/pkg/cluster/phases"
	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/ssh"
	"github.com/openpai/paictl/test/runnable"
	"github.com/openpai/paictl/test/tier"
)

var realPeer = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "pai-peer-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, engine.PeerProgram)
	cmd := exec.Command("go", "build", "-ldflags", "-s -w", "-o", file, "../../cmd/pai-peer")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	return os.ReadFile(file)
})

// newSharingLab returns machines with separate addresses on this machine's loopback interface. The programs in its bundle are large enough for
// transfers between machines. The machines run program, or the real pai-peer if program is nil.
func newSharingLab(t *testing.T, machines int, program []byte) *lab {
	t.Helper()
	if program == nil {
		if _, err := exec.LookPath("go"); err != nil {
			t.Skip("skipped: this machine has no go")
		}
		var err error
		program, err = realPeer()
		require.NoError(t, err)
	}
	l := newLab(t, 1, machines-1)
	l.bundle = sharingBundle(t, l.bundle, program)
	for i, h := range l.hosts {
		h.ip = fmt.Sprintf("127.77.%d.%d", os.Getpid()%250, i+1)
		h.write("/.fake/address", h.ip+"\n")
		l.conf.Layout.MachineList[i].HostIP = h.ip
	}
	t.Cleanup(func() {
		l.rest()
		for _, h := range l.hosts {
			assert.Empty(t, h.serving(), "%s still serves", h.name)
			// A shell that has survived the end of its session removes its folder later.
			assert.EventuallyWithT(t, func(c *assert.CollectT) {
				left, err := filepath.Glob(h.root + engine.StateDir + "/peer-*")
				require.NoError(c, err)
				inside, err := filepath.Glob(h.root + engine.StateDir + "/peer-*/*")
				require.NoError(c, err)
				// On a busy machine, a shell may be killed while it removes its folder, 20 s after its end was requested. The folder then keeps the
				// name that it was given for its removal, and the next run removes it.
				left = slices.DeleteFunc(append(left, inside...), func(p string) bool { return strings.Contains(p, ".ended") })
				assert.Empty(c, left)
			}, time.Minute, 50*time.Millisecond)
		}
	})
	return l
}

// sharingBundle adds the program pai-peer to the bundle, and makes some other programs large.
func sharingBundle(t *testing.T, b *bundle.Bundle, program []byte) *bundle.Bundle {
	t.Helper()
	m := b.Manifest()
	put := func(a bundle.Artifact, content []byte) bundle.Artifact {
		a.SHA256, a.Size = engine.Hash(content), int64(len(content))
		require.NoError(t, os.WriteFile(b.File(a), content, 0o755))
		return a
	}
	for i, a := range m.Artifacts {
		if a.Name != "containerd" && a.Name != "runc" && a.Name != "kubelet" && a.Name != "kubectl" {
			continue
		}
		content, err := os.ReadFile(b.File(a))
		require.NoError(t, err)
		m.Artifacts[i] = put(a, append(append(content, "exit 0\n"...), bytes.Repeat([]byte("# "+a.Name+" is longer than this\n"), 200_000)...))
	}
	a := bundle.Artifact{Name: engine.PeerProgram, Version: "v1", Kind: bundle.KindBinary, Path: bundle.PathOf(bundle.KindBinary, engine.PeerProgram), Source: "test"}
	m.Artifacts = append(m.Artifacts, put(a, program))
	text, err := yaml.Marshal(m)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(b.Dir(), bundle.ManifestFile), text, 0o644))
	out, err := bundle.Open(b.Dir())
	require.NoError(t, err)
	return out
}

func (h *fakeHost) serving() []int {
	var out []int
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(h.lab.t, err)
	for _, f := range all {
		b, err := os.ReadFile(f)
		words := strings.Split(string(b), "\x00")
		if err == nil && len(words) > 2 && words[1] == "serve" && words[2] == h.root {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(f)))
			require.NoError(h.lab.t, err)
			out = append(out, pid)
		}
	}
	return out
}

// listening reports whether the machine accepts connections at its port for other machines.
func (h *fakeHost) listening() bool {
	c, err := net.Dial("tcp", net.JoinHostPort(h.ip, strconv.Itoa(config.PeerPort)))
	if err == nil {
		_ = c.Close()
	}
	return err == nil
}

type heard struct {
	next engine.Sink
	do   func(engine.Event)
}

func (s heard) Emit(e engine.Event) {
	s.do(e)
	s.next.Emit(e)
}

func onEvent(do func(engine.Event)) func(*labOptions, *ssh.Options) {
	return func(o *labOptions, _ *ssh.Options) { o.Sink = heard{o.Sink, do} }
}

func (o *outcome) warnings() string {
	var b strings.Builder
	for _, e := range o.events {
		if e.Kind == engine.EventWarning {
			fmt.Fprintf(&b, "%s: %s -> %s\n", e.Host, e.Message, e.Hint)
		}
	}
	return b.String()
}

// from returns the machine that has served bytes according to an event.
func from(e engine.Event) (string, bool) {
	name, ok := strings.CutPrefix(e.Message, "from ")
	return name, ok && e.Kind == engine.EventProgress
}

func (l *lab) complete() {
	l.t.Helper()
	for _, name := range []string{"containerd", "runc", "kubelet", "kubectl"} {
		a, ok := l.bundle.Lookup(bundle.KindBinary, name)
		require.True(l.t, ok)
		for _, h := range l.hosts {
			assert.Equal(l.t, a.SHA256, engine.Hash([]byte(h.read(phases.BinDir+"/"+name))), "%s on %s", name, h.name)
		}
	}
}

func (l *lab) shareable() int64 {
	var n int64
	for _, name := range []string{"containerd", "runc", "kubelet", "kubectl"} {
		a, _ := l.bundle.Lookup(bundle.KindBinary, name)
		n += a.Size
	}
	return n
}

func TestFilesGoFromMachineToMachine(t *testing.T) {
	l := newSharingLab(t, 6, nil)
	var once sync.Once
	commands := ""
	o := l.up(t.Context(), onEvent(func(e engine.Event) {
		if name, ok := from(e); ok {
			once.Do(func() {
				assert.True(t, l.host(name).listening())
				all, err := filepath.Glob("/proc/[0-9]*/cmdline")
				assert.NoError(t, err)
				for _, f := range all {
					b, _ := os.ReadFile(f)
					commands += string(b) + "\n"
				}
			})
		}
	}))
	require.NoError(t, o.err, "%s", l.story(o))
	l.complete()
	assert.Empty(t, o.warnings())
	traffic := o.summary().Traffic
	require.NotNil(t, traffic)
	assert.GreaterOrEqual(t, traffic.Passed, 3*l.shareable())
	own := traffic.Sent - int64(len(l.hosts))*4<<20 // the program, and the small files
	assert.LessOrEqual(t, own, 3*l.shareable())
	for _, h := range l.hosts {
		assert.False(t, h.listening(), "%s is closed when the run ends", h.name)
	}

	note := ""
	for _, e := range o.events {
		if e.Kind == engine.EventNote {
			note = e.Message
		}
	}
	assert.Regexp(t, `^files for 6 machines, [0-9.]+ MB: at most [0-9.]+ MB go from here, the rest from machine to machine \(TCP port 6445\)$`, note)

	// No command line, file or event contains the token.
	token := ""
	for _, h := range l.hosts {
		for _, r := range h.server.Execs() {
			if _, after, ok := strings.Cut(r.Body, `"token":"`); ok {
				token, _, _ = strings.Cut(after, `"`)
			}
		}
	}
	require.Len(t, token, 52)
	assert.Contains(t, commands, engine.PeerProgram+"\x00serve")
	assert.NotContains(t, commands, token)
	for _, e := range o.events {
		text, err := json.Marshal(e)
		require.NoError(t, err)
		assert.NotContains(t, string(text), token)
	}
	for name := range l.bytes() {
		b, err := os.ReadFile(name)
		require.NoError(t, err)
		assert.NotContains(t, string(b), token, name)
	}

	again := l.mustUp()
	assert.Empty(t, again.changes)
	assert.Nil(t, again.summary().Traffic)
}

func TestFewMachinesOrAWishGetEverythingFromHere(t *testing.T) {
	tier.More(t, "two clusters")
	for name, tt := range map[string]struct {
		machines int
		edit     func(*labOptions, *ssh.Options)
	}{
		"three machines": {3, func(*labOptions, *ssh.Options) {}},
		"--no-peers":     {4, func(o *labOptions, _ *ssh.Options) { o.NoPeers = true }},
	} {
		t.Run(name, func(t *testing.T) {
			l := newSharingLab(t, tt.machines, nil)
			o := l.up(t.Context(), tt.edit)
			require.NoError(t, o.err, "%s", l.story(o))
			l.complete()
			assert.Zero(t, o.summary().Traffic.Passed)
			assert.GreaterOrEqual(t, o.summary().Traffic.Sent, int64(tt.machines)*l.shareable())
			for _, h := range l.hosts {
				for _, r := range h.server.Execs() {
					assert.NotContains(t, r.Body, "pp_serve ")
				}
			}
		})
	}
}

func TestADryRunSaysWhatWouldTravelAndStartsNothing(t *testing.T) {
	l := newSharingLab(t, 5, nil)
	o := l.up(t.Context(), func(o *labOptions, so *ssh.Options) { o.DryRun, so.Gate = true, ssh.DryRunGate{} })
	require.NoError(t, o.err)
	said := false
	for _, e := range o.events {
		said = said || e.Kind == engine.EventNote && strings.HasPrefix(e.Message, "files for 5 machines, ")
	}
	assert.True(t, said)
	assert.Nil(t, o.summary().Traffic)
}

func TestABundleWithoutTheProgramIsSentAsBefore(t *testing.T) {
	l := newSharingLab(t, 4, nil)
	m := l.bundle.Manifest()
	m.Artifacts = m.Artifacts[:len(m.Artifacts)-1]
	text, err := yaml.Marshal(m)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(l.bundle.Dir(), bundle.ManifestFile), text, 0o644))
	l.bundle, err = bundle.Open(l.bundle.Dir())
	require.NoError(t, err)
	o := l.mustUp()
	l.complete()
	assert.Contains(t, o.warnings(), "the bundle has no pai-peer: all files are sent from here to each machine -> make the bundle again with this paictl: paictl bundle build")
}

// The serving process is killed with kill -9 in the middle of a transfer.
func TestAMachineThatDiesWhileItServesIsReplaced(t *testing.T) {
	l := newSharingLab(t, 6, nil)
	var once sync.Once
	killed := ""
	o := l.up(t.Context(), onEvent(func(e engine.Event) {
		if name, ok := from(e); ok {
			once.Do(func() {
				killed = name
				for _, pid := range l.host(name).serving() {
					assert.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
				}
			})
		}
	}))
	require.NoError(t, o.err, "%s", l.story(o))
	require.NotEmpty(t, killed)
	l.complete()
	assert.Positive(t, o.summary().Traffic.Passed)
}

// spoil changes the files that a machine serves, but not the files that the machine itself uses.
func (h *fakeHost) spoil() {
	shared, err := filepath.Glob(h.root + engine.StateDir + "/peer-*/[0-9a-f]*")
	require.NoError(h.lab.t, err)
	for _, f := range shared {
		b, err := os.ReadFile(f)
		if err != nil || len(b) == 0 {
			continue
		}
		b[len(b)/2]++
		_ = os.Remove(f)
		_ = os.WriteFile(f, b, 0o600)
	}
}

func TestWrongContentIsThrownAwayAndComesFromAnother(t *testing.T) {
	l := newSharingLab(t, 6, nil)
	o := l.up(t.Context(), onEvent(func(e engine.Event) {
		if e.Kind == engine.EventProgress && e.Message == "upload" {
			l.host("w1").spoil()
		}
	}), func(o *labOptions, so *ssh.Options) { so.Tracer = spoiler{l.host("w1"), so.Tracer} })
	require.NoError(t, o.err, "%s", l.story(o))
	l.complete()
	assert.Contains(t, o.warnings(), "got wrong content from w1 and has thrown it away")
	assert.Contains(t, o.warnings(), "check the disk and memory of w1")
}

// spoiler is a tracer that spoils the files of a machine as soon as the machine serves them.
type spoiler struct {
	h    *fakeHost
	next ssh.Tracer
}

func (s spoiler) Trace(e ssh.Event) {
	if e.Name == engine.PhasePeer+"/share" || e.Name == engine.PhasePeer+"/fetch" {
		s.h.spoil()
	}
	s.next.Trace(e)
}

// The test simulates a firewall between the machines. The address that each machine reports has a closed port, and the real program reports the
// errors.
func TestWhereMachinesDoNotReachEachOtherEverythingComesFromHere(t *testing.T) {
	program, err := realPeer()
	require.NoError(t, err)
	real := filepath.Join(t.TempDir(), engine.PeerProgram)
	runnable.Write(t, real, program)
	authorities := t.TempDir()
	makeAuthorities(t, authorities)
	cert, err := os.ReadFile(filepath.Join(authorities, "1.crt"))
	require.NoError(t, err)
	block, _ := pem.Decode(cert)
	ready, err := json.Marshal(peer.Ready{Address: "ADDRESS:1", Certificate: block.Bytes})
	require.NoError(t, err)
	l := newSharingLab(t, 6, fmt.Appendf(nil, "#!/bin/sh\n[ \"$1\" = serve ] || exec %s \"$@\"\necho '%s' | sed \"s/ADDRESS/$(cat \"$2/.fake/address\")/\"\ncat >/dev/null\n", real, ready))
	o := l.mustUp()
	l.complete()
	assert.Zero(t, o.summary().Traffic.Passed)
	assert.Equal(t, 1, strings.Count(o.warnings(), "\n"), "%s", o.warnings())
	assert.Contains(t, o.warnings(), "machines don't reach each other: all files are sent from here")
	assert.Contains(t, o.warnings(), "open TCP port 6445 between the machines, or use --no-peers")
}

func TestAMachineWhereTheProgramDoesNotRunGetsItsFilesFromHere(t *testing.T) {
	l := newSharingLab(t, 4, []byte("#!/bin/sh\necho 'cannot execute: required file not found' >&2\nexit 126\n"))
	o := l.mustUp()
	l.complete()
	assert.Zero(t, o.summary().Traffic.Passed)
	assert.Equal(t, 1, strings.Count(o.warnings(), "it passes no files on to other machines"), "%s", o.warnings())
	assert.Contains(t, o.warnings(), "required file not found")
}

// No machine connects to a machine that reports an unexpected address.
func TestAMachineThatNamesAnotherAddressTakesNoPart(t *testing.T) {
	l := newSharingLab(t, 4, []byte("#!/bin/sh\necho '{\"address\":\"127.0.0.1:22\",\"certificate\":\"\"}'\ncat >/dev/null\n"))
	o := l.mustUp()
	l.complete()
	assert.Zero(t, o.summary().Traffic.Passed)
	assert.Contains(t, o.warnings(), "unexpected answer")
}

func TestARunThatIsCancelledClosesAllPortsAndTheNextGoesOn(t *testing.T) {
	l := newSharingLab(t, 6, nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	o := l.up(ctx, onEvent(func(e engine.Event) {
		if _, ok := from(e); ok {
			cancel()
		}
	}))
	require.ErrorIs(t, o.err, context.Canceled)
	l.rest()
	for _, h := range l.hosts {
		assert.False(t, h.listening(), h.name)
		assert.Empty(t, h.serving(), h.name)
	}
	l.mustUp()
	l.complete()
}

// The operator's machine disappears without closing its connections.
func TestAPaictlThatDiesLeavesNoPortOpen(t *testing.T) {
	l := newSharingLab(t, 6, nil)
	c := &crash{lab: l}
	l.crash.Store(c)
	o := l.up(t.Context(), onEvent(func(e engine.Event) {
		if _, ok := from(e); ok {
			c.now()
		}
	}))
	require.Error(t, o.err)
	require.True(t, c.happened())
	l.crash.Store(nil)
	l.rest()
	for _, h := range l.hosts {
		assert.False(t, h.listening(), h.name)
		assert.Empty(t, h.serving(), h.name)
	}
	l.mustUp()
	l.complete()
}

// Four of seven machines stop in the middle of the first files from paictl. paictl sends to four machines at a time.
func TestMachinesThatTakeNothingHoldNoOthersUp(t *testing.T) {
	l := newSharingLab(t, 7, nil)
	const tooSlowly = "it receives files from here too slowly: other machines don't wait for it"
	stopped := []string{"w3", "w4", "w5", "w6"}
	goOn := make(chan struct{})
	var once sync.Once
	release := func() { once.Do(func() { close(goOn) }) }
	t.Cleanup(release)
	var all sync.WaitGroup // of the four
	all.Add(len(stopped))
	for _, name := range stopped {
		var stops sync.Once
		l.host(name).taking = func(offset int64) {
			if offset > 7<<19 { // it gets pai-peer, which is smaller
				stops.Do(all.Done)
				<-goOn
			}
		}
	}
	for _, name := range []string{"m1", "w1", "w2"} { // which come after them
		l.host(name).taking = func(int64) { all.Wait() }
	}
	kubectl, ok := l.bundle.Lookup(bundle.KindBinary, "kubectl")
	require.True(t, ok)
	has := func(name string) bool {
		b, err := os.ReadFile(l.host(name).root + phases.BinDir + "/kubectl")
		return err == nil && engine.Hash(b) == kubectl.SHA256
	}
	done := make(chan struct{})
	var whole, warned atomic.Bool
	go func() { // the run can't end before the others continue
		for {
			select {
			case <-done:
				return
			case <-time.After(100 * time.Millisecond):
			}
			if warned.Load() && has("m1") && has("w1") && has("w2") {
				whole.Store(true)
				release()
				return
			}
		}
	}()
	began := time.Now()
	o := l.up(t.Context(), onEvent(func(e engine.Event) {
		if strings.HasPrefix(e.Message, tooSlowly) {
			warned.Store(true)
		}
	}), func(o *labOptions, _ *ssh.Options) {
		o.Patience = peer.Patience{Stall: 3 * time.Second, Grace: 3 * time.Second, Rate: 1 << 10}
	})
	close(done)
	require.NoError(t, o.err, "%s", l.story(o))
	assert.True(t, whole.Load(), "after %s only what takes bytes is waited for", time.Since(began))
	l.complete()
	assert.Equal(t, 1, strings.Count(o.warnings(), tooSlowly), "%s", o.warnings())
}

func TestKeysOfABackupNeverGoFromMachineToMachine(t *testing.T) {
	p := &engine.Peers{Sums: []string{engine.Hash([]byte("a program"))}}
	assert.True(t, p.Serves(ssh.File{SHA256: engine.Hash([]byte("a program"))}))
	assert.False(t, p.Serves(phases.Upload(engine.RestoreFile{SHA256: engine.Hash([]byte("the keys"))}, backup.PartKeys)))
}
