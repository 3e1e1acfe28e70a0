package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"
)

// tensorboard is the plugin that runs TensorBoard on the first task of the first role. TensorBoard shows training logs.
type tensorboard struct {
	Port   json.Number       `json:"port"`
	LogDir map[string]string `json:"logdir"`
}

func (t *tensorboard) check() error {
	if n, err := strconv.Atoi(t.Port.String()); err != nil || n < 1 || n > 65535 {
		return errors.New("parameter port isn't a number from 1 to 65535")
	}
	if len(t.LogDir) == 0 {
		return errors.New("parameter logdir is missing: {NAME: FOLDER}")
	}
	return nil
}

func (t *tensorboard) post(context.Context, *Run) error { return nil }

func (t *tensorboard) pre(ctx context.Context, r *Run) error {
	if r.Layout.Own != 0 {
		return nil
	}
	if _, err := exec.LookPath("tensorboard"); err != nil {
		if err := t.install(r); err != nil {
			return err
		}
	}
	args := append([]string{"tensorboard"}, t.args(version(ctx, r))...)
	if err := r.background(args, r.Environ, nil); err != nil {
		return err
	}
	r.Log("tensorboard listens on port %s", t.Port)
	return nil
}

func (t *tensorboard) install(r *Run) error {
	for _, python := range []string{"python3", "python"} {
		if _, err := exec.LookPath(python); err != nil {
			continue
		}
		r.Log("the image has no tensorboard: installing it with pip")
		if err := r.command([]string{python, "-m", "pip", "install", "--quiet", "tensorboard"}, r.Environ); err != nil {
			return fmt.Errorf("install tensorboard: %w", err)
		}
		if _, err := exec.LookPath("tensorboard"); err != nil {
			return errors.New("tensorboard was installed, but not into a folder of PATH")
		}
		return nil
	}
	return errors.New("tensorboard: command not found: the image has neither tensorboard nor python to install it")
}

// args returns the arguments for a major version of TensorBoard. Version 2 has a different option for named folders, and
// listens only on 127.0.0.1 by default.
func (t *tensorboard) args(major int) []string {
	var named []string
	for _, name := range slices.Sorted(maps.Keys(t.LogDir)) {
		named = append(named, name+":"+t.LogDir[name])
	}
	port := "--port=" + t.Port.String()
	switch {
	case major < 2:
		return []string{"--logdir=" + strings.Join(named, ","), port}
	case len(named) == 1:
		return []string{"--logdir=" + t.LogDir[slices.Sorted(maps.Keys(t.LogDir))[0]], port, "--bind_all"}
	}
	return []string{"--logdir_spec=" + strings.Join(named, ","), port, "--bind_all"}
}

// versionLimit is how long TensorBoard may take to print its version. TensorBoard may first load TensorFlow, which takes long.
const versionLimit = time.Minute

// version returns TensorBoard's major version. It returns 2 if TensorBoard doesn't print a version.
func version(ctx context.Context, r *Run) int {
	ctx, cancel := context.WithTimeout(ctx, versionLimit)
	defer cancel()
	out, err := r.ask(ctx, []string{"tensorboard", "--version"})
	if err != nil {
		return 2
	}
	for _, word := range strings.Fields(out) {
		if major, _, ok := strings.Cut(word, "."); ok {
			if n, err := strconv.Atoi(major); err == nil {
				return n
			}
		}
	}
	return 2
}
