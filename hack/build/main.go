// build runs "go build" for paictl and the programs that paictl starts. The programs are smaller than with the go command alone:
//
//	go run ./hack/build -trimpath -o bin/ ./cmd/paictl ./cmd/paictl-history
//
// It accepts the arguments and the environment of go build. Use TARGET_GOOS and TARGET_GOARCH instead of GOOS and GOARCH, because the latter would
// apply to this program. With an overlay (go help build), it replaces two parts: the embedded source, charts and modules with compressed files, and
// text/template with a version that lets the linker remove unused methods. ADR 70 explains the reasons.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"

	"github.com/openpai/paictl"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		os.Exit(failed.ExitCode()) // go build has already printed why
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "build:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	dir, err := os.MkdirTemp("", "paictl-build-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	goroot, err := ask(ctx, "env", "GOROOT")
	if err != nil {
		return err
	}
	root, err := ask(ctx, "list", "-m", "-f", "{{.Dir}}", paictl.Module)
	if err != nil {
		return err
	}
	overlay, err := write(dir, goroot, root)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", append([]string{"build", "-tags=packed", "-overlay=" + overlay}, args...)...)
	cmd.Env, cmd.Stdout, cmd.Stderr = target(os.Environ()), os.Stdout, os.Stderr
	return cmd.Run()
}

// target returns the environment for go build, with GOOS and GOARCH from TARGET_GOOS and TARGET_GOARCH.
func target(env []string) []string {
	for _, name := range []string{"GOOS", "GOARCH"} {
		if value := os.Getenv("TARGET_" + name); value != "" {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// ask runs a go command, and returns its output.
func ask(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}

// write writes an overlay for Go's own source and the repository to a folder, and returns the path of the overlay.
func write(dir, goroot, root string) (string, error) {
	replaced := map[string]string{}
	replace := func(file string, data []byte) error {
		replaced[file] = filepath.Join(dir, filepath.Base(file))
		return os.WriteFile(replaced[file], data, 0o644)
	}
	embedded, err := pack(root)
	if err != nil {
		return "", err
	}
	for file, data := range embedded {
		if err := replace(filepath.Join(root, filepath.FromSlash(file)), data); err != nil {
			return "", err
		}
	}
	file := filepath.Join(goroot, "src", "text", "template", "exec.go")
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	edited, err := edit(string(text))
	if err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	if err := replace(file, []byte(edited)); err != nil {
		return "", err
	}
	list, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, list, 0o644)
}
