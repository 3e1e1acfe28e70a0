// Package browser signs in with a browser. A browser on this machine passes a code to a loopback address. For a browser on another machine, the
// user types a code into the browser.
// In: a server, and a function that opens a browser. Out: the tokens of a session. Everything stops when the context ends.
package browser

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"runtime"
	"time"

	"github.com/openpai/paictl/pkg/client"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/secret"
	"github.com/openpai/paictl/pkg/server/v3/api"
)

// patience is how long the user may take to sign in with the browser.
const patience = 10 * time.Minute

// Available reports whether a browser can be opened on this machine. It returns false in an SSH session, in CI, and without a display.
func Available(getenv func(string) string) bool {
	if getenv("SSH_CONNECTION") != "" || getenv("CI") != "" {
		return false
	}
	if runtime.GOOS != "linux" {
		return runtime.GOOS == "darwin" || runtime.GOOS == "windows"
	}
	_, err := exec.LookPath("xdg-open")
	return err == nil && (getenv("DISPLAY") != "" || getenv("WAYLAND_DISPLAY") != "")
}

// Open opens an address in the user's default browser.
func Open(ctx context.Context, address string) error {
	command := []string{"xdg-open", address}
	switch runtime.GOOS {
	case "darwin":
		command = []string{"open", address}
	case "windows":
		command = []string{"rundll32", "url.dll,FileProtocolHandler", address}
	}
	return exec.CommandContext(ctx, command[0], command[1:]...).Run()
}

// arrived is the result that a browser passes to the loopback address.
type arrived struct {
	code secret.String
	err  error
}

const path = "/callback"

// SignIn signs in with a browser on this machine, as in RFC 8252. It calls open with the address of the sign-in page.
func SignIn(ctx context.Context, s *client.Server, open func(ctx context.Context, address string) error) (*client.Pair, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("wait for the browser: %w", err)
	}
	state, verifier, redirect := rand.Text(), rand.Text()+rand.Text(), "http://"+l.Addr().String()+path
	got := make(chan arrived, 1)
	srv := &http.Server{Handler: page(state, got), ReadHeaderTimeout: 5 * time.Second, MaxHeaderBytes: 16 << 10}
	go func() { _ = srv.Serve(l) }() // it lasts until the sign-in ends
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = srv.Shutdown(end) // the page is sent
		_ = srv.Close()
	}()
	sum := sha256.Sum256([]byte(verifier))
	if err := open(ctx, s.Page(api.ProgramPage, url.Values{"response_type": {"code"}, "client_id": {s.Client()}, "redirect_uri": {redirect}, "state": {state},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"}})); err != nil {
		return nil, err
	}
	select {
	case a := <-got:
		if a.err != nil {
			return nil, a.err
		}
		return s.Code(ctx, a.code, verifier, redirect)
	case <-ctx.Done():
		return nil, over(ctx)
	}
}

// over returns the error of a context that ended. If the time ran out, the error contains a remedy.
func over(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return hint.Errorf("try again; on a machine without a browser: paictl login --device", "the sign-in was not completed within %s", patience)
	}
	return ctx.Err()
}

// page returns a handler that receives the browser's result. It rejects requests without the right state, because another program may have sent
// them.
func page(state string, got chan<- arrived) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Type", "text/html; charset=utf-8")
		h.Set("Cache-Control", "no-store")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		q := r.URL.Query()
		if subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(state)) != 1 {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		a := arrived{code: secret.String(q.Get("code"))}
		if !a.code.IsSet() {
			a.err = errors.New("the browser returned no code: the sign-in was refused")
		}
		_, _ = w.Write([]byte("<!doctype html><title>paictl</title><p>paictl goes on in the terminal. You can close this page.</p>"))
		select {
		case got <- a:
		default: // a result was delivered before
		}
	})
	return mux
}

// longest is the maximum time between two polls of the server.
const longest = time.Minute

// Device signs in with a browser on another machine, as in RFC 8628. It calls show with the code that the user types into the browser. It calls
// wait before each poll; tests pass a function that doesn't wait.
func Device(ctx context.Context, s *client.Server, show func(*api.Device), wait func(context.Context, time.Duration) error) (*client.Pair, error) {
	d, err := s.NewDevice(ctx)
	if err != nil {
		return nil, err
	}
	show(d)
	ctx, cancel := context.WithTimeout(ctx, min(time.Duration(d.ExpiresIn)*time.Second, patience))
	defer cancel()
	pause := min(max(time.Duration(d.Interval)*time.Second, time.Second), longest)
	for {
		if err := wait(ctx, pause); err != nil {
			return nil, cmp.Or(over(ctx), err)
		}
		pair, err := s.Await(ctx, secret.String(d.DeviceCode))
		switch {
		case errors.Is(err, client.ErrPending):
		case errors.Is(err, client.ErrSlow):
			pause = min(pause+5*time.Second, longest)
		default:
			return pair, err
		}
	}
}

// Wait waits for a duration, or until ctx ends.
func Wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
