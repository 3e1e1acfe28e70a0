package target

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/renameio/v2"

	"github.com/openpai/paictl/pkg/cluster/backup"
	"github.com/openpai/paictl/pkg/hint"
)

type folder string

// Path implements Target.
func (f folder) Path(name string) string { return filepath.Join(string(f), name) }

// Close implements Target.
func (folder) Close() error { return nil }

// Write implements Target.
func (f folder) Write(ctx context.Context, name string, fill func(context.Context, io.Writer) error) (int64, error) {
	out, err := renameio.NewPendingFile(f.Path(name), renameio.WithPermissions(0o600), renameio.WithTempDir(filepath.Clean(string(f))))
	if err != nil {
		return 0, hint.Errorf("name an existing folder that you may write to", "write the backup: %w", err)
	}
	defer func() { _ = out.Cleanup() }()
	f.tidy(time.Now())
	if err := fill(ctx, out); err != nil {
		return 0, err
	}
	info, err := out.Stat()
	if err == nil {
		err = out.CloseAtomicallyReplace()
	}
	if err != nil {
		return 0, written(f, name, err)
	}
	return info.Size(), nil
}

// tidy removes unfinished files that killed calls of Write have left. It ignores errors, because such files do no harm.
func (f folder) tidy(now time.Time) {
	all, _ := filepath.Glob(f.Path(".*" + backup.Ending + "*"))
	for _, path := range all {
		name, _, _ := strings.Cut(filepath.Base(path), backup.Ending)
		if _, ok := backup.Named(strings.TrimPrefix(name, ".") + backup.Ending); !ok {
			continue
		}
		if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() && now.Sub(info.ModTime()) > abandoned {
			_ = os.Remove(path)
		}
	}
}

// List implements Target.
func (f folder) List(_ context.Context, cluster string) ([]backup.File, error) {
	all, err := os.ReadDir(filepath.Clean(string(f)))
	if err != nil {
		return nil, fmt.Errorf("list backups: %w", err)
	}
	out := []backup.File{}
	for _, e := range all {
		if !e.Type().IsRegular() {
			continue
		}
		info, err := e.Info()
		if err != nil {
			continue // removed since it was listed
		}
		out = found(out, f, cluster, e.Name(), info.Size())
	}
	backup.Sort(out)
	return out, nil
}

// Open implements Target.
func (f folder) Open(ctx context.Context, name string) (io.ReadCloser, int64, error) {
	in, err := os.Open(f.Path(name))
	if err != nil {
		return nil, 0, err
	}
	info, err := in.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, in.Close())
	}
	return until(ctx, in), info.Size(), nil
}

// Delete implements Target.
func (f folder) Delete(_ context.Context, name string) error {
	if err := os.Remove(f.Path(name)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("delete the backup: %w", err)
	}
	return nil
}

func until(ctx context.Context, r io.ReadCloser) io.ReadCloser { return &untilReader{ctx, r} }

type untilReader struct {
	ctx context.Context //nolint:containedctx // a reader has no parameter for it
	io.ReadCloser
}

// Read implements io.Reader.
func (u *untilReader) Read(b []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, context.Cause(u.ctx)
	}
	return u.ReadCloser.Read(b)
}
