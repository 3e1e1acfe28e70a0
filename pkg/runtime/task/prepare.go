package task

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/openpai/paictl/pkg/runtime/code"
	"github.com/openpai/paictl/pkg/runtime/env"
	"github.com/openpai/paictl/pkg/runtime/exit"
	"github.com/openpai/paictl/pkg/runtime/process"
	"github.com/openpai/paictl/pkg/runtime/spec"
)

func (t *task) fetch(ctx context.Context) error {
	if t.spec.Code == nil {
		return nil
	}
	c := *t.spec.Code
	c.Dir = t.path(c.Dir)
	err := code.Get(ctx, &c, t.get(spec.CodeTokenVariable), t.path(spec.Home+"/runtime.d"), t.journal.Printf)
	if err != nil && ctx.Err() != nil {
		return exit.OfProgram(exit.Stopped, fmt.Errorf("%w while it fetched its code", process.ErrStopped))
	}
	return err
}

// checkPorts returns an error if one of this task's ports is in use. On the host network, another task on the same machine may
// use the port.
func (t *task) checkPorts() error {
	if !t.spec.HostNetwork {
		return nil
	}
	me := t.layout.Me()
	owner := map[int]string{}
	for label, list := range me.Ports {
		for _, port := range list {
			if other, ok := owner[port]; ok {
				return exit.With(exit.PortConflict, fmt.Errorf("port %d was chosen for both %s and %s; another attempt chooses others", port, other, label))
			}
			owner[port] = label
		}
	}
	if t.layout.Own == 0 && me.MasterPort != 0 {
		if other, ok := owner[me.MasterPort]; ok {
			return exit.With(exit.PortConflict, fmt.Errorf("port %d was chosen for both %s and the rendezvous; another attempt chooses others", me.MasterPort, other))
		}
		owner[me.MasterPort] = "MASTER_PORT"
	}
	for port, label := range owner {
		if taken(port) {
			return exit.With(exit.PortConflict, fmt.Errorf("port %d (%s) is in use on this machine; another attempt chooses others", port, label))
		}
	}
	return nil
}

// taken reports whether a process listens on a port. It tries to listen on the port. If this user may not listen on the port,
// taken tries to connect to it.
func taken(port int) bool {
	l, err := net.Listen("tcp", ":"+strconv.Itoa(port)) //nolint:noctx // it doesn't block
	switch {
	case err == nil:
		_ = l.Close()
		return false
	case errors.Is(err, unix.EADDRINUSE):
		return true
	}
	conn, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))) //nolint:noctx // to this machine
	if err == nil {
		_ = conn.Close()
	}
	return err == nil
}

func (t *task) writeFiles() error {
	used := 0
	for _, e := range t.Environ {
		used += len(e) + 9
	}
	vars, notes := t.layout.Vars(used)
	for _, n := range notes {
		t.journal.Printf("%s", n)
	}
	t.environ = env.Merge(env.Without(t.Environ, spec.TaskVariable, spec.PeersTokenVariable, spec.CodeTokenVariable), vars)
	if err := t.layout.Write(t.Root, vars); err != nil {
		return fmt.Errorf("write the files of the task: %w", err)
	}
	if len(t.layout.Tasks) > 1 {
		if err := t.writeHosts(); err != nil {
			// This error is normal if the container doesn't run as root. DNS also contains the names.
			t.journal.Notef("names of the other tasks come from DNS only: %v", err)
		}
	}
	if dir := t.spec.CheckpointDir; dir != "" {
		if err := os.MkdirAll(t.path(dir), 0o777); err != nil {
			t.journal.Printf("the folder for checkpoints can't be created: %v", err)
		}
	}
	if t.spec.Code != nil {
		t.dir = t.path(t.spec.Code.Dir)
	}
	return nil
}

// writeHosts adds the names of tasks to /etc/hosts. It writes in place, because /etc/hosts is mounted in containers and can't
// be replaced.
func (t *task) writeHosts() error {
	name := t.path("/etc/hosts")
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	old, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	text := t.layout.Hosts(old)
	if _, err := f.WriteAt(text, 0); err != nil {
		return err
	}
	if err := f.Truncate(int64(len(text))); err != nil {
		return err
	}
	return f.Close()
}

// userHome returns the home folder of the image's user. Programs search for their configuration in this folder.
func (t *task) userHome() string {
	home := t.get("HOME")
	if home == "" || home == "/" && os.Getuid() != 0 {
		return ""
	}
	if info, err := os.Stat(home); err != nil || !info.IsDir() || unix.Access(home, unix.W_OK) != nil {
		return ""
	}
	return filepath.Clean(home)
}
