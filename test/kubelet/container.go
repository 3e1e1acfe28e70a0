package kubelet

import (
	"context"
	_ "embed" // for container.sh
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// inside is a script that runs in the namespaces of a container: it mounts the files of the container, and then executes the container's program.
//
//go:embed container.sh
var inside string

// maxMessage is the maximum size of a container's last message in bytes, as in a real kubelet.
const maxMessage = 4096

// mount is a file or folder of this machine that is mounted in a container.
type mount struct{ from, to string }

// end describes the end of a container.
type end struct {
	code      int32
	message   string
	began, at time.Time
}

// container runs a container until it ends. Unless started is nil, it calls started once the process exists.
func (r *run) container(c *corev1.Container, volumes map[string]string, out io.Writer, started func() error) (end, error) {
	folder := filepath.Join(r.folder, "containers", c.Name)
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return end{}, err
	}
	environ, err := r.environ(c)
	if err != nil {
		return end{}, err
	}
	mounts, args, err := r.mounts(c, folder, volumes)
	if err != nil {
		return end{}, err
	}
	cmd, err := command(r.stopped, folder, mounts, args)
	if err != nil {
		return end{}, err
	}
	cmd.Env, cmd.Stdout, cmd.Stderr = environ, out, out
	if grace := r.pod.Spec.TerminationGracePeriodSeconds; grace != nil {
		cmd.WaitDelay = time.Duration(*grace) * time.Second
	}
	e := end{began: time.Now()}
	if e.code, err = r.process(cmd, started); err != nil {
		return e, err
	}
	e.at = time.Now()
	message, err := os.ReadFile(filepath.Join(folder, messageFile))
	e.message = string(message[:min(len(message), maxMessage)])
	return e, err
}

// process runs a command until it ends. It blocks its thread during that time, because the kernel kills the command when the thread ends. So the
// command also ends if the test binary is killed.
func (r *run) process(cmd *exec.Cmd, started func() error) (int32, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	defer context.AfterFunc(r.ctx, func() { _ = cmd.Process.Kill() })() // it may have ended
	var err error
	if started != nil {
		err = started()
	}
	var failed *exec.ExitError
	wrong := cmd.Wait()
	if !errors.As(wrong, &failed) && r.stopped.Err() == nil {
		err = errors.Join(err, wrong)
	}
	status := cmd.ProcessState.Sys().(syscall.WaitStatus) // on Linux it has this type
	if status.Signaled() {
		return int32(128 + status.Signal()), err
	}
	return int32(status.ExitStatus()), err
}

// These are the names of files in the folder of a container.
const (
	mountsFile  = "mounts"
	hostsFile   = "hosts"
	messageFile = "message"
)

// command returns a command that runs as the first process of new namespaces. When ctx ends, the process receives SIGTERM, like the process of a
// container.
func command(ctx context.Context, folder string, mounts []mount, args []string) (*exec.Cmd, error) {
	var list strings.Builder
	for _, m := range mounts {
		if strings.ContainsAny(m.from+m.to, ">\n") || !mountable(m.to) {
			return nil, fmt.Errorf("this kubelet mounts nothing at %q", m.to)
		}
		fmt.Fprintf(&list, "%s>%s\n", m.from, m.to)
	}
	file := filepath.Join(folder, mountsFile)
	if err := os.WriteFile(file, []byte(list.String()), 0o600); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "/bin/sh", append([]string{"-c", inside, "sh", file}, args...)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Cloneflags: syscall.CLONE_NEWPID, Unshareflags: syscall.CLONE_NEWNS}
	if os.Getuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	return cmd, nil
}

// mountable reports whether the script can mount a file or folder at a path. The script mounts empty folders at /usr/local and /tmp, and can create
// mount points only below these.
func mountable(to string) bool {
	return strings.HasPrefix(to, "/usr/local/") || strings.HasPrefix(to, "/tmp/") || to == "/dev/shm" || to == "/etc/hosts"
}

// possible returns an error with the remedy if this machine can't create containers.
func (k *Kubelet) possible(ctx context.Context) error {
	cmd, err := command(ctx, k.folder, nil, []string{"true"})
	if err != nil {
		return err
	}
	cmd.Env = []string{path}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("this machine can't make the namespaces of containers: %w %s\n"+
			"Run the test as root; in a container of Docker, start that with --privileged. To run it as another user, allow users to make namespaces:\n"+
			"sysctl -w user.max_user_namespaces=10000 kernel.apparmor_restrict_unprivileged_userns=0", err, out)
	}
	return nil
}
