package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openpai/paictl/pkg/runtime/exit"
	"github.com/openpai/paictl/pkg/runtime/process"
	"github.com/openpai/paictl/pkg/runtime/sshd"
)

// ssh is the plugin for logins to a task by users and by other tasks of the job.
type ssh struct {
	JobSSH  *flag       `json:"jobssh"` // tasks can log in to each other; true by default
	Barrier flag        `json:"sshbarrier"`
	Minutes json.Number `json:"sshbarrierTimeout"`
	UserSSH struct {
		Type  string `json:"type"`
		Value string `json:"value"`
	} `json:"userssh"`
	// JobKey was created for this job at its submission.
	JobKey struct {
		PrivateKey     string   `json:"privateKey"`
		AuthorizedKeys []string `json:"authorizedKeys"`
	} `json:"jobKey"`

	timeout time.Duration
}

func (s *ssh) check() error {
	s.timeout = sshd.DefaultBarrier
	if s.Minutes != "" {
		n, err := s.Minutes.Float64()
		if err != nil || n <= 0 || n > 60*24*30 {
			return errors.New("parameter sshbarrierTimeout isn't a number of minutes")
		}
		s.timeout = time.Duration(n * float64(time.Minute))
	}
	if s.JobSSH == nil {
		on := flag(true)
		s.JobSSH = &on
	}
	if !*s.JobSSH {
		s.JobKey.PrivateKey = ""
	}
	_, err := sshd.ParseAuthorized(s.authorized())
	return err
}

func (s *ssh) authorized() []string {
	keys := append([]string(nil), s.JobKey.AuthorizedKeys...)
	if s.UserSSH.Type != "none" {
		keys = append(keys, strings.Split(s.UserSSH.Value, "\n")...)
	}
	return keys
}

func (s *ssh) post(context.Context, *Run) error { return nil }

func (s *ssh) pre(ctx context.Context, r *Run) error {
	keys := s.authorized()
	if s.JobKey.PrivateKey != "" {
		own, err := publicKey(s.JobKey.PrivateKey)
		if err != nil {
			return err
		}
		keys = append(keys, own)
		files := sshd.Files{Dir: filepath.Join(r.Home, "ssh"), Key: s.JobKey.PrivateKey}
		if err := files.Write(r.Layout); err != nil {
			return fmt.Errorf("write the configuration of ssh: %w", err)
		}
		if r.UserHome != "" {
			// The folder .ssh may be mounted read-only.
			if err := files.Include(r.UserHome); err != nil {
				r.Log("ssh knows the job's tasks only with -F %s: %v", files.Config(), err)
			}
		}
	}
	if err := s.serve(ctx, r, keys); err != nil {
		return err
	}
	return s.wait(ctx, r)
}

func publicKey(key string) (string, error) {
	signer, err := sshd.ParseKey(key)
	if err != nil {
		return "", err
	}
	return sshd.AuthorizedKey(signer), nil
}

// serve starts the SSH server in a separate process. A crash of the server ends connections, but doesn't end the task.
func (s *ssh) serve(ctx context.Context, r *Run, keys []string) error {
	ports := r.Layout.Me().Ports["ssh"]
	if len(ports) == 0 {
		return errors.New("the role has no port with the label ssh")
	}
	hostKey, err := sshd.HostKey(s.JobKey.PrivateKey)
	if err != nil {
		return err
	}
	listen := net.ListenConfig{}
	l, err := listen.Listen(ctx, "tcp", fmt.Sprintf(":%d", ports[0]))
	if errors.Is(err, unix.EADDRINUSE) {
		return exit.With(exit.PortConflict, fmt.Errorf("the ssh server can't use its port: %w", err))
	}
	if err != nil {
		return fmt.Errorf("the ssh server can't listen: %w", err)
	}
	defer func() { _ = l.Close() }()
	tcp, ok := l.(*net.TCPListener)
	if !ok {
		return errors.New("the port isn't a TCP port")
	}
	f, err := tcp.File()
	if err != nil {
		return err
	}
	config := sshd.Config{HostKey: hostKey, Authorized: keys, Environ: r.Environ, Dir: r.Dir}
	if err := r.startServer(f, config); err != nil {
		return errors.Join(err, f.Close())
	}
	r.Log("ssh server listens on port %d", ports[0])
	return nil
}

// A server that fails repeatedly is restarted only a few times. If the server has worked for a while, for example until the
// kernel killed it to free memory, the count starts again.
const (
	restarts = 5
	worked   = 10 * time.Minute
)

// startServer starts the server's process, and restarts it when it exits. The socket stays open, so that clients only have to
// wait.
func (r *Run) startServer(l *os.File, c sshd.Config) error {
	p, pipe, err := r.server(l, c)
	if err != nil {
		return err
	}
	go func() {
		defer func() { _ = l.Close() }()
		began := time.Now()
		for n := 1; ; n++ {
			code, _ := p.Wait(context.Background())
			_ = pipe.Close()
			if time.Since(began) > worked {
				n = 1
			}
			if n > restarts {
				r.Log("the ssh server ended with code %d, %d times in a row: it is not started again", code, n)
				return
			}
			r.Log("the ssh server ended with code %d: starting it again", code)
			began = time.Now()
			if p, pipe, err = r.server(l, c); err != nil {
				r.Log("the ssh server can't be started: %v", err)
				return
			}
		}
	}()
	return nil
}

// server starts the server's process. The server runs until the caller closes the returned pipe.
func (r *Run) server(l *os.File, c sshd.Config) (*process.Process, *os.File, error) {
	in, send, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	defer in.Close()
	out, closeOut, err := r.Output()
	if err != nil {
		return nil, nil, errors.Join(err, send.Close())
	}
	defer closeOut()
	p, err := r.Reaper.Start(process.Command{Args: []string{r.Self, "sshd"}, Dir: c.Folder(), Env: r.Environ, Stdin: in, Stdout: out, Stderr: out, Extra: []*os.File{l}})
	if err != nil {
		return nil, nil, errors.Join(err, send.Close())
	}
	go func() { _ = json.NewEncoder(send).Encode(c) }() // a server that has exited is noticed above
	return p, send, nil
}

// wait waits until the task can log in to all other tasks.
func (s *ssh) wait(ctx context.Context, r *Run) error {
	if !s.Barrier || len(r.Layout.Tasks) == 1 {
		return nil
	}
	if s.JobKey.PrivateKey == "" {
		return errors.New("sshbarrier needs jobssh: without it tasks can't log in to each other")
	}
	if !r.Layout.Spec.Gang {
		r.Log("sshbarrier is left out: the tasks of this job don't wait for each other (gangAllocation: false)")
		return nil
	}
	return sshd.Barrier{Layout: r.Layout, Key: s.JobKey.PrivateKey, Timeout: s.timeout, Log: r.Log}.Wait(ctx)
}
