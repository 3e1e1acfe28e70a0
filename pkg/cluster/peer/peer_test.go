package peer

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const token = "0123456789abcdef0123456789abcdef"

func content(size int) ([]byte, string) {
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(i>>12 ^ i)
	}
	sum := sha256.Sum256(b)
	return b, hex.EncodeToString(sum[:])
}

type machine struct {
	Ready
	folder string
	gone   chan struct{}
	ended  chan error
}

type lineWriter struct{ lines chan string }

func (w *lineWriter) Write(b []byte) (int, error) {
	w.lines <- string(b)
	return len(b), nil
}

func serve(t *testing.T, listed ...string) *machine {
	t.Helper()
	m := &machine{folder: t.TempDir(), gone: make(chan struct{}), ended: make(chan error, 1)}
	out := &lineWriter{lines: make(chan string, 1)}
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	go func() {
		m.ended <- Serve(ctx, Serving{Address: "127.0.0.1:0", Token: token, Folder: m.folder, Files: listed, Seconds: 3600}, out, m.gone)
	}()
	select {
	case line := <-out.lines:
		require.NoError(t, json.Unmarshal([]byte(line), &m.Ready))
	case err := <-m.ended:
		require.NoError(t, err)
	}
	return m
}

func (m *machine) put(t *testing.T, name string, b []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(m.folder, name), b, 0o600))
}

func wanting(t *testing.T, from Ready, sum string, size int) Fetching {
	t.Helper()
	dir, shared := t.TempDir(), t.TempDir()
	return Fetching{
		From: from, Token: token, SHA256: sum, Size: int64(size), Mode: 0o640,
		Path: filepath.Join(dir, "file"), Part: filepath.Join(dir, ".part"), Folder: shared,
	}
}

// fetch runs Fetch and returns the last Word that it prints.
func fetch(t *testing.T, f Fetching) Message {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, Fetch(t.Context(), f, &out))
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	var w Message
	require.NoError(t, json.Unmarshal([]byte(lines[len(lines)-1]), &w))
	return w
}

func TestAFileGoesFromMachineToMachineToMachine(t *testing.T) {
	b, sum := content(9 << 20)
	first := serve(t, sum)
	first.put(t, sum, b)
	f := wanting(t, first.Ready, sum, len(b))
	w := fetch(t, f)
	assert.Equal(t, Message{Got: int64(len(b)), Done: true, Shared: true}, w)
	got, err := os.ReadFile(f.Path)
	require.NoError(t, err)
	assert.Equal(t, b, got)
	info, err := os.Stat(f.Path)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o640), info.Mode())
	assert.NoFileExists(t, f.Part)

	second := serve(t, sum)
	require.NoError(t, os.Rename(filepath.Join(f.Folder, sum), filepath.Join(second.folder, sum)))
	require.NoError(t, os.Remove(f.Path)) // Fetch has moved it to its path; the second name is enough
	assert.True(t, fetch(t, wanting(t, second.Ready, sum, len(b))).Done)
}

func TestWhatIsAskedForWithoutRightIsRefused(t *testing.T) {
	b, sum := content(1000)
	_, other := content(2000)
	m := serve(t, sum)
	m.put(t, sum, b)
	m.put(t, other, []byte("there, but not of this run"))
	secret := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(secret, []byte("secret"), 0o600))
	linked := strings.Repeat("a", 64)
	require.NoError(t, os.Symlink(secret, filepath.Join(m.folder, linked)))

	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13}}}
	ask := func(method, path, authorization string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), method, "https://"+m.Address, http.NoBody)
		require.NoError(t, err)
		r.URL.Opaque = path // the path as it is, with all its dots
		if authorization != "" {
			r.Header.Set("Authorization", authorization)
		}
		answer, err := client.Do(r)
		require.NoError(t, err)
		defer func() { _ = answer.Body.Close() }()
		body, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		return answer.StatusCode, string(body)
	}
	right := "Bearer " + token
	code, body := ask(http.MethodGet, "/sha256/"+sum, right)
	assert.Equal(t, http.StatusOK, code)
	assert.Equal(t, string(b), body)
	for name, tt := range map[string]struct {
		method, path, authorization string
		code                        int
	}{
		"no token":                     {http.MethodGet, "/sha256/" + sum, "", http.StatusUnauthorized},
		"a wrong token":                {http.MethodGet, "/sha256/" + sum, "Bearer " + strings.Repeat("0", 32), http.StatusUnauthorized},
		"the token's beginning":        {http.MethodGet, "/sha256/" + sum, right[:20], http.StatusUnauthorized},
		"an empty token":               {http.MethodGet, "/sha256/" + sum, "Bearer ", http.StatusUnauthorized},
		"a file that is not listed":    {http.MethodGet, "/sha256/" + other, right, http.StatusNotFound},
		"a listed name that is a link": {http.MethodGet, "/sha256/" + linked, right, http.StatusNotFound},
		"a way out":                    {http.MethodGet, "/sha256/../" + filepath.Base(secret), right, http.StatusNotFound},
		"an encoded way out":           {http.MethodGet, "/sha256/..%2f..%2fetc%2fpasswd", right, http.StatusNotFound},
		"an absolute path":             {http.MethodGet, "/sha256/" + secret, right, http.StatusNotFound},
		"the list":                     {http.MethodGet, "/sha256/", right, http.StatusNotFound},
		"the root":                     {http.MethodGet, "/", right, http.StatusNotFound},
		"another method":               {http.MethodPut, "/sha256/" + sum, right, http.StatusNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			code, body := ask(tt.method, tt.path, tt.authorization)
			assert.Equal(t, tt.code, code)
			assert.NotContains(t, body, "secret")
		})
	}
}

func TestALinkAmongTheListedFilesIsNotFollowed(t *testing.T) {
	b, sum := content(1000)
	m := serve(t, sum)
	secret := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(secret, b, 0o600))
	require.NoError(t, os.Symlink(secret, filepath.Join(m.folder, sum)))
	assert.Equal(t, Refused, fetch(t, wanting(t, m.Ready, sum, len(b))).Failure)
}

func TestWrongContentNeverGetsTheName(t *testing.T) {
	b, sum := content(5 << 20)
	m := serve(t, sum)
	wrong := bytes.Clone(b)
	wrong[len(wrong)-1]++
	m.put(t, sum, wrong)
	f := wanting(t, m.Ready, sum, len(b))
	w := fetch(t, f)
	assert.Equal(t, Wrong, w.Failure)
	assert.NoFileExists(t, f.Path)
	assert.NoFileExists(t, f.Part)
	assert.NoFileExists(t, filepath.Join(f.Folder, sum))

	m.put(t, sum, b[:1000])
	assert.Equal(t, Wrong, fetch(t, f).Failure, "another size")
	assert.NoFileExists(t, f.Path)
}

func TestAnUnfinishedFileIsContinued(t *testing.T) {
	b, sum := content(20 << 20)
	m := serve(t, sum)
	m.put(t, sum, b)
	f := wanting(t, m.Ready, sum, len(b))
	require.NoError(t, os.WriteFile(f.Part, b[:15<<20], 0o600))
	w := fetch(t, f)
	assert.True(t, w.Done)
	assert.Equal(t, int64(9<<20), w.Got, "4 MiB before the end, where an upload may have left holes")

	// Any of the machines may have caused the difference, so the test expects no blame. The next attempt starts from the beginning.
	broken := bytes.Clone(b[:15<<20])
	broken[7]++
	g := wanting(t, m.Ready, sum, len(b))
	require.NoError(t, os.WriteFile(g.Part, broken, 0o600))
	assert.Equal(t, Mixed, fetch(t, g).Failure)
	w = fetch(t, g)
	assert.True(t, w.Done)
	assert.Equal(t, int64(len(b)), w.Got)
}

func TestAnotherMachineAtTheAddressGetsNoToken(t *testing.T) {
	b, sum := content(1000)
	meant, other := serve(t, sum), serve(t, sum)
	other.put(t, sum, b)
	f := wanting(t, Ready{Address: other.Address, Certificate: meant.Certificate}, sum, len(b))
	w := fetch(t, f)
	assert.Equal(t, Unreachable, w.Failure)
	assert.Contains(t, w.Error, "certificate")
}

func TestAPortWhereNoOneListensIsUnreachable(t *testing.T) {
	b, sum := content(1000)
	m := serve(t, sum)
	m.put(t, sum, b)
	close(m.gone)
	require.NoError(t, <-m.ended)
	assert.Equal(t, Unreachable, fetch(t, wanting(t, m.Ready, sum, len(b))).Failure)
}

// The end of the run also closes open transfers.
func TestTheEndOfTheRunEndsTransfers(t *testing.T) {
	const size = 64 << 20
	b, sum := content(size)
	m := serve(t, sum)
	m.put(t, sum, b)
	f := wanting(t, m.Ready, sum, size)
	var once sync.Once
	out := writerFunc(func(p []byte) (int, error) {
		once.Do(func() {
			close(m.gone)
			assert.NoError(t, <-m.ended)
		})
		return len(p), nil
	})
	last := &lastWriter{next: out}
	require.NoError(t, Fetch(t.Context(), f, last))
	var w Message
	require.NoError(t, json.Unmarshal(last.line, &w))
	assert.Equal(t, Broken, w.Failure)
	assert.NoFileExists(t, f.Path)
	assert.FileExists(t, f.Part, "the next attempt goes on with it")
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

type lastWriter struct {
	next io.Writer
	line []byte
}

func (w *lastWriter) Write(b []byte) (int, error) {
	w.line = bytes.Clone(b)
	return w.next.Write(b)
}

func TestServingEndsWithItsTime(t *testing.T) {
	out := &lineWriter{lines: make(chan string, 1)}
	require.NoError(t, Serve(t.Context(), Serving{Address: "127.0.0.1:0", Token: token, Folder: t.TempDir(), Seconds: 1}, out, nil))
}

func TestATakenPortIsReplacedByAnother(t *testing.T) {
	b, sum := content(1000)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = taken.Close() }()
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, sum), b, 0o600))
	out := &lineWriter{lines: make(chan string, 1)}
	gone := make(chan struct{})
	ended := make(chan error, 1)
	go func() {
		ended <- Serve(t.Context(), Serving{Address: taken.Addr().String(), Token: token, Folder: folder, Files: []string{sum}, Seconds: 3600}, out, gone)
	}()
	var r Ready
	require.NoError(t, json.Unmarshal([]byte(<-out.lines), &r))
	assert.NotEqual(t, taken.Addr().String(), r.Address)
	assert.True(t, fetch(t, wanting(t, r, sum, len(b))).Done)
	close(gone)
	require.NoError(t, <-ended)
}

func TestServingRefusesWhatWouldOpenMoreThanItShould(t *testing.T) {
	good := Serving{Address: "127.0.0.1:0", Token: token, Folder: t.TempDir(), Seconds: 1}
	for name, edit := range map[string]func(*Serving){
		"all addresses":     func(s *Serving) { s.Address = "0.0.0.0:0" },
		"no address":        func(s *Serving) { s.Address = ":0" },
		"a short token":     func(s *Serving) { s.Token = "short" },
		"a relative folder": func(s *Serving) { s.Folder = "tmp" },
		"a path as a file":  func(s *Serving) { s.Files = []string{"../etc/passwd"} },
		"no end":            func(s *Serving) { s.Seconds = 0 },
	} {
		t.Run(name, func(t *testing.T) {
			s := good
			edit(&s)
			assert.Error(t, Serve(t.Context(), s, io.Discard, nil))
		})
	}
}

func answering(t *testing.T, answer http.HandlerFunc) Ready {
	t.Helper()
	cert, der, err := newCertificate()
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &http.Server{Handler: answer, TLSConfig: &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS13}, ReadHeaderTimeout: time.Minute}
	go func() { _ = s.ServeTLS(l, "", "") }()
	t.Cleanup(func() { _ = s.Close() })
	return Ready{Address: l.Addr().String(), Certificate: der}
}

func TestAMachineThatFallsSilentIsLeft(t *testing.T) {
	b, sum := content(8 << 20)
	over := make(chan struct{})
	defer close(over)
	from := answering(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(len(b)))
		_, _ = w.Write(b[:6<<20])
		_ = http.NewResponseController(w).Flush()
		<-over
	})
	f := wanting(t, from, sum, len(b))
	var w Message
	arrived := func() bool {
		part, err := os.Stat(f.Part)
		return err == nil && part.Size() > backward
	}
	for f.Patience.Stall = 50 * time.Millisecond; !arrived(); f.Patience.Stall *= 2 { // on a busy machine, nothing arrives in such a short time
		w = fetch(t, f)
		require.Equal(t, Slow, w.Failure)
	}

	good := serve(t, sum)
	good.put(t, sum, b)
	f.From, f.Patience = good.Ready, Patience{}
	w = fetch(t, f)
	assert.True(t, w.Done)
	assert.Less(t, w.Got, int64(len(b)), "what the first has sent is used")
}

func TestAMachineThatNeverAnswersIsLeft(t *testing.T) {
	b, sum := content(1000)
	over := make(chan struct{})
	defer close(over)
	from := answering(t, func(http.ResponseWriter, *http.Request) { <-over })
	f := wanting(t, from, sum, len(b))
	f.Patience.Dial = 50 * time.Millisecond
	assert.Equal(t, Unreachable, fetch(t, f).Failure)
}

func TestAMachineThatSendsDropsIsTooSlow(t *testing.T) {
	p := Patience{}.WithDefaults()
	assert.False(t, p.TooSlow(0, 30*time.Second), "a slow start is forgiven")
	assert.True(t, p.TooSlow(0, 31*time.Second))
	assert.False(t, p.TooSlow(10<<20, 70*time.Second))
	assert.True(t, p.TooSlow(10<<20, 71*time.Second))
}

func TestARedirectIsNotFollowed(t *testing.T) {
	b, sum := content(1000)
	m := serve(t, sum)
	m.put(t, sum, b)
	from := answering(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://"+m.Address+r.URL.Path, http.StatusFound)
	})
	assert.Equal(t, Refused, fetch(t, wanting(t, from, sum, len(b))).Failure)
}

func TestAHostileMachineGetsNotAllTransfers(t *testing.T) {
	s := newShelf(Serving{})
	var frees []func()
	for range maxPerMachine {
		free, ok := s.enter("10.0.0.9:1234")
		require.True(t, ok)
		frees = append(frees, free)
	}
	_, ok := s.enter("10.0.0.9:4321")
	assert.False(t, ok)
	for i := range maxTransfers - maxPerMachine {
		_, ok := s.enter(fmt.Sprintf("10.0.1.%d:1", i))
		assert.True(t, ok)
	}
	_, ok = s.enter("10.0.2.1:1")
	assert.False(t, ok)
	frees[0]()
	_, ok = s.enter("10.0.2.1:1")
	assert.True(t, ok)
}

func TestAFileThatCantBeWrittenIsThisMachinesFault(t *testing.T) {
	b, sum := content(1000)
	m := serve(t, sum)
	m.put(t, sum, b)
	f := wanting(t, m.Ready, sum, len(b))
	require.NoError(t, os.Mkdir(f.Part, 0o755))
	assert.Equal(t, Disk, fetch(t, f).Failure)
}

func TestTheProgramTakesWhatToDoFromAFileAndEndsWithItsInput(t *testing.T) {
	b, sum := content(1000)
	root := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(root, "shared"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(root, "shared", sum), b, 0o600))
	what, err := json.Marshal(Serving{Address: "127.0.0.1:0", Token: token, Folder: "/shared", Files: []string{sum}, Seconds: 3600})
	require.NoError(t, err)
	in, session := io.Pipe()
	out := &lineWriter{lines: make(chan string, 1)}
	ended := make(chan error, 1)
	go func() { ended <- Run(t.Context(), []string{"serve", root}, bytes.NewReader(what), in, out) }()
	var r Ready
	require.NoError(t, json.Unmarshal([]byte(<-out.lines), &r))

	what, err = json.Marshal(Fetching{From: r, Token: token, SHA256: sum, Size: 1000, Mode: 0o600, Path: "/file", Part: "/.part"})
	require.NoError(t, err)
	var said bytes.Buffer
	require.NoError(t, Run(t.Context(), []string{"fetch", root}, bytes.NewReader(what), strings.NewReader(""), &said))
	assert.FileExists(t, filepath.Join(root, "file"))
	assert.Contains(t, said.String(), `"done":true`)

	require.NoError(t, session.Close())
	require.NoError(t, <-ended)
	_, err = net.DialTimeout("tcp", r.Address, time.Second)
	assert.Error(t, err, "the port is closed")

	assert.Error(t, Run(t.Context(), []string{"fetch"}, strings.NewReader(`{"unknown":1}`), nil, &said))
	assert.Error(t, Run(t.Context(), nil, nil, nil, nil))
}
