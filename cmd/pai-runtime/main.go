// Command pai-runtime is the first process in the containers of a job. It prepares the task, starts the user's program, and reports how the program
// has exited.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openpai/paictl/pkg/runtime/code"
	"github.com/openpai/paictl/pkg/runtime/env"
	"github.com/openpai/paictl/pkg/runtime/exit"
	"github.com/openpai/paictl/pkg/runtime/install"
	"github.com/openpai/paictl/pkg/runtime/spec"
	"github.com/openpai/paictl/pkg/runtime/sshd"
	"github.com/openpai/paictl/pkg/runtime/task"
	"github.com/openpai/paictl/pkg/runtime/transfer"
	"github.com/openpai/paictl/pkg/version"
)

const usage = `pai-runtime runs the tasks of jobs; paictl and pai-controller call it.

  pai-runtime install FOLDER     copy this program into a folder, as FOLDER/runtime
  pai-runtime run                be the first process of a task's container
  pai-runtime exec -- COMMAND    run a command with the environment of the task
  pai-runtime cp-kind PATH       say whether a path is a file or a folder, or none
  pai-runtime cp-list PATH       list a folder, as JSON
  pai-runtime cp-out PATH NAME   pack a file or a folder, as NAME, to standard output
  pai-runtime cp-in FOLDER       unpack into a folder what comes on standard input
  pai-runtime version            say which version this is
`

func main() {
	code, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "pai-runtime:", err)
		if code == 0 {
			code = 1
		}
	}
	os.Exit(code)
}

func run(args []string) (int, error) {
	if len(args) == 0 {
		return 2, errors.New("a command is missing\n\n" + strings.TrimSpace(usage))
	}
	switch name, rest := args[0], args[1:]; {
	case name == "install" && len(rest) == 1:
		return 0, install.Into("/proc/self/exe", rest[0])
	case name == "run" && len(rest) == 0:
		if self, _ := os.Executable(); self == spec.ImageRuntime {
			// If the link can't be created, the task runs anyway, but "paictl job exec" can't find the runtime.
			if err := install.Link(self, spec.Home); err != nil {
				fmt.Fprintln(os.Stderr, "[pai-runtime]", err)
			}
		}
		return task.Run(context.Background(), task.Options{
			Environ: os.Environ(), Stdout: os.Stdout, Stderr: os.Stderr, Self: "/proc/self/exe", Now: time.Now,
		}), nil
	case name == "exec" && len(rest) > 1 && rest[0] == "--":
		return execute(rest[1:])
	case name == "cp-kind" && len(rest) == 1:
		kind, err := transfer.KindOf(rest[0])
		fmt.Println(kind)
		return 0, err
	case name == "cp-list" && len(rest) == 1:
		list, err := transfer.List(rest[0])
		if err != nil {
			return 0, err
		}
		return 0, json.NewEncoder(os.Stdout).Encode(list)
	case name == "cp-out" && len(rest) == 2:
		_, err := transfer.Pack(context.Background(), os.Stdout, rest[0], rest[1], func(name, why string) {
			fmt.Fprintf(os.Stderr, "left out: %s (%s)\n", name, why)
		})
		return 0, err
	case name == "cp-in" && len(rest) == 1:
		return 0, code.UnpackCopy(context.Background(), os.Stdin, rest[0])
	case name == "sshd" && len(rest) == 0:
		return 0, serve()
	case name == "version" && len(rest) == 0:
		fmt.Println("pai-runtime", version.Version)
		return 0, nil
	case name == "help", name == "--help", name == "-h":
		fmt.Print(usage)
		return 0, nil
	}
	return 2, fmt.Errorf("%q isn't understood\n\n%s", args, usage)
}

// execute replaces this process with a command, in the environment and folder of the task.
func execute(args []string) (int, error) {
	environ := os.Environ()
	switch data, err := os.ReadFile(env.ScriptFile); {
	case errors.Is(err, os.ErrNotExist):
		fmt.Fprintln(os.Stderr, "[pai-runtime] the task's program hasn't begun: its environment isn't known yet")
	case err != nil:
		return exit.CannotExecute, err
	default:
		vars, err := env.ParseScript(data)
		if err != nil {
			return exit.CannotExecute, fmt.Errorf("%s: %w", env.ScriptFile, err)
		}
		environ = env.Merge(environ, vars)
		for _, v := range vars {
			if v.Name == "PAI_CODE_DIR" {
				if err := os.Chdir(v.Value); err != nil {
					fmt.Fprintln(os.Stderr, "[pai-runtime]", err)
				}
			}
		}
	}
	path, err := exec.LookPath(args[0])
	if err != nil && !errors.Is(err, exec.ErrDot) {
		return exit.NotFound, fmt.Errorf("%s: command not found", args[0])
	}
	return exit.CannotExecute, fmt.Errorf("%s: %w", path, unix.Exec(path, args, environ))
}

// serve runs the SSH server. It reads the configuration from standard input. The listener is file descriptor 3.
func serve() error {
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGTERM)
	defer stop()
	c, err := sshd.ReadConfig(os.Stdin)
	if err != nil {
		return err
	}
	l, err := net.FileListener(os.NewFile(3, "listener"))
	if err != nil {
		return err
	}
	// The runtime keeps the other end of the pipe open. So the pipe is closed when the runtime exits for any reason, and the server stops.
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	return sshd.Serve(ctx, l, c, func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) })
}
