package sshd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	xssh "golang.org/x/crypto/ssh"

	"github.com/openpai/paictl/pkg/runtime/env"
	"github.com/openpai/paictl/pkg/runtime/exit"
)

// DefaultBarrier is how long a task waits for the SSH servers of the other tasks.
const DefaultBarrier = 30 * time.Minute

const (
	dialTime  = 10 * time.Second
	parallel  = 16 // logins at a time
	retryTime = time.Second
	retryMax  = 10 * time.Second
	tellEvery = time.Minute
)

// Barrier waits until this task can log in to every other task.
type Barrier struct {
	Layout  *env.Layout
	Key     string // the private key of the job, PEM
	Timeout time.Duration
	Log     func(format string, args ...any)
}

// Wait waits until this task can log in to all other tasks. After the timeout, it returns an error with exit code 249 and a
// text that OpenPAI's failure rules match.
func (b Barrier) Wait(ctx context.Context) error {
	config, err := clientConfig(b.Key)
	if err != nil {
		return err
	}
	left := others(b.Layout)
	limited, cancel := context.WithTimeout(ctx, b.Timeout)
	defer cancel()
	pause, told := retryTime, time.Now()
	for {
		var last error
		if left, last = round(limited, left, config); len(left) == 0 {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if time.Since(told) > tellEvery {
			told = time.Now()
			b.Log("waiting for the ssh servers of %d tasks, as %s: %v", len(left), left[0].Alias(), last)
		}
		t := time.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-limited.Done():
			t.Stop()
			return exit.With(exit.SSHBarrierTimeout, fmt.Errorf(
				"SSH barrier reaches max retry count: after %s %d tasks can't be reached by ssh, as %s: %w", b.Timeout, len(left), left[0].Alias(), last))
		case <-t.C:
		}
		t.Stop()
		pause = min(pause*2, retryMax)
	}
}

// others returns all tasks except this task. The list begins with the next task, so that tasks don't all connect to the same
// task first.
func others(l *env.Layout) []*env.Task {
	var out []*env.Task
	for i := 1; i < len(l.Tasks); i++ {
		out = append(out, &l.Tasks[(l.Own+i)%len(l.Tasks)])
	}
	return out
}

func clientConfig(key string) (*xssh.ClientConfig, error) {
	signer, err := ParseKey(key)
	if err != nil {
		return nil, err
	}
	hostKey, err := HostKey(key)
	if err != nil {
		return nil, err
	}
	host, err := ParseKey(hostKey)
	if err != nil {
		return nil, err
	}
	return &xssh.ClientConfig{
		User: "root", Auth: []xssh.AuthMethod{xssh.PublicKeys(signer)},
		HostKeyCallback: xssh.FixedHostKey(host.PublicKey()), Timeout: dialTime,
	}, nil
}

// round tries to log in to all tasks. It returns the tasks with failed logins, and the last error.
func round(ctx context.Context, tasks []*env.Task, config *xssh.ClientConfig) ([]*env.Task, error) {
	var (
		mu   sync.Mutex
		left []*env.Task
		last error
		wg   sync.WaitGroup
		slot = make(chan struct{}, parallel)
	)
	for _, t := range tasks {
		slot <- struct{}{}
		wg.Go(func() {
			defer func() { <-slot }()
			if err := knock(ctx, t, config); err != nil {
				mu.Lock()
				defer mu.Unlock()
				left, last = append(left, t), err
			}
		})
	}
	wg.Wait()
	return left, last
}

// knock logs in to a task and closes the connection.
func knock(ctx context.Context, t *env.Task, config *xssh.ClientConfig) error {
	host, ports := t.Address, t.Ports["ssh"]
	if host == "" {
		host = t.Name
	}
	if host == "" || len(ports) == 0 {
		return errors.New("it has no known address")
	}
	address := net.JoinHostPort(host, strconv.Itoa(ports[0]))
	d := net.Dialer{Timeout: dialTime}
	conn, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	if err := conn.SetDeadline(time.Now().Add(dialTime)); err != nil {
		return err
	}
	c, _, _, err := xssh.NewClientConn(conn, address, config)
	if err != nil {
		return err
	}
	return c.Close()
}
