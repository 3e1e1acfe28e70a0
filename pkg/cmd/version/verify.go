package version

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/openpai/paictl/pkg/cluster/bundle/download"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/release"
	"github.com/openpai/paictl/pkg/secret"
	"github.com/openpai/paictl/pkg/ui/plural"
	"github.com/openpai/paictl/pkg/ui/terminal"
	"github.com/openpai/paictl/pkg/version"
)

// verification is the output of "version --verify -o json".
type verification struct {
	Release string            `json:"release"`
	Time    time.Time         `json:"time"`
	Key     string            `json:"key"`
	Files   []release.Verdict `json:"files"`
}

// newest is the output of "version --check -o json".
type newest struct {
	Version string    `json:"version"`
	Newest  string    `json:"newest"`
	Time    time.Time `json:"time"`
	Newer   bool      `json:"newer"`
	Address string    `json:"address"`
}

func verifyRun(ctx context.Context, opts *Options) error {
	key, err := release.ReadKey(opts.Key)
	if err != nil {
		return err
	}
	files, names := opts.Files, make([]string, len(opts.Files))
	if len(files) == 0 {
		if files, names, err = installed(opts); err != nil {
			return err
		}
	}
	list := opts.Checksums
	if list == "" {
		if list, err = release.Find(files[0]); err != nil {
			return err
		}
	}
	signed, err := release.Read(list, key)
	if err != nil {
		return err
	}
	result := verification{Release: signed.Version, Time: signed.Time, Key: signed.Key.String()}
	bad := 0
	for i, file := range files {
		v, err := signed.Verify(ctx, file, names[i])
		if err != nil {
			return err
		}
		if !v.OK {
			bad++
		}
		result.Files = append(result.Files, v)
	}
	if err := opts.show(result); err != nil {
		return err
	}
	if bad > 0 {
		return hint.Errorf("don't run or install these files; download them again from the release", "%d of %s didn't match the release %s",
			bad, plural.Of(len(files), "file"), signed.Version)
	}
	return nil
}

// installed returns the running program and the other programs of a release that are installed beside it, with their names in the release.
func installed(opts *Options) (files, names []string, err error) {
	running, err := opts.Program()
	if err != nil {
		return nil, nil, fmt.Errorf("find the running program: %w", err)
	}
	target, err := filepath.EvalSymlinks(running)
	if err != nil {
		return nil, nil, fmt.Errorf("find the running program: %w", err)
	}
	for i, name := range release.Programs() {
		file := running
		if i > 0 {
			file = filepath.Join(filepath.Dir(target), name)
			if _, err := os.Lstat(file); errors.Is(err, fs.ErrNotExist) {
				continue
			}
		}
		files, names = append(files, file), append(names, release.Program(name, version.Version, runtime.GOOS, runtime.GOARCH))
	}
	return files, names, nil
}

func (o *Options) show(r verification) error {
	if !o.Output.Is("text") {
		return o.Output.Write(o.IO.Out, r, cmdutil.Table{})
	}
	for _, v := range r.Files {
		if v.OK {
			fmt.Fprintf(o.IO.Out, "ok       %s is %s of %s, sha256 %s\n", terminal.Line(v.File), v.Name, terminal.Line(r.Release), v.SHA256)
		} else {
			fmt.Fprintf(o.IO.Out, "refused  %s: %s\n", terminal.Line(v.File), terminal.Line(v.Reason))
		}
	}
	_, err := fmt.Fprintf(o.IO.Out, "signed   with the key %s, for the commit of %s\n", r.Key, r.Time.Format(time.RFC3339))
	return err
}

func checkRun(ctx context.Context, opts *Options) error {
	key, err := release.ReadKey(opts.Key)
	if err != nil {
		return err
	}
	list, err := release.Get(ctx, download.Client{HTTP: http.DefaultClient, Wait: download.Pause}, opts.Address, "", key)
	if err != nil {
		return err
	}
	r := newest{Version: version.Version, Newest: list.Version, Time: list.Time, Address: secret.Address(opts.Address)}
	if r.Newer, err = release.Newer(list.Version, version.Version); err != nil {
		return err
	}
	if !opts.Output.Is("text") {
		return opts.Output.Write(opts.IO.Out, r, cmdutil.Table{})
	}
	if r.Newer {
		_, err = fmt.Fprintf(opts.IO.Out, "%s is released, of %s; this is %s. Get it from %s\n", terminal.Line(r.Newest), r.Time.Format(time.DateOnly), r.Version, r.Address)
	} else {
		_, err = fmt.Fprintf(opts.IO.Out, "this is %s; the newest release is %s\n", r.Version, terminal.Line(r.Newest))
	}
	return err
}
