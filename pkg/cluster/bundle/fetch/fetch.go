package fetch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/openpai/paictl/pkg/cluster/bundle"
	"github.com/openpai/paictl/pkg/cluster/bundle/chart"
	"github.com/openpai/paictl/pkg/cluster/bundle/download"
	"github.com/openpai/paictl/pkg/ui/plural"
)

// LockName is the default name of the lock file, in the bundle's folder.
const LockName = "bundle.lock"

// parallel is the number of downloads at the same time. It is large enough for a fast connection, and small enough for the upstream servers.
const parallel = 4

// Options holds the arguments of Run.
type Options struct {
	// Dir is the bundle's folder. Run creates it if it doesn't exist.
	Dir string
	// Lock is the path of the lock file; "" means LockName in Dir.
	Lock string
	// Mirror is an http or https URL below which all upstream hosts are mirrored; "" means no mirror.
	Mirror string
	// Catalogue lists the artifacts to fetch.
	Catalogue Catalogue
	// Progress receives one line per artifact. It may be nil.
	Progress io.Writer
	// Transport sends the requests; nil means http.DefaultTransport.
	Transport http.RoundTripper
	// Wait waits after a failed attempt; nil means pauses of increasing length.
	Wait func(ctx context.Context, attempt int) error
}

type fetcher struct {
	Options
	d      download.Client
	mirror mirror
	lock   *lockFile

	mu    sync.Mutex // guards w, n, and Progress
	w     *bundle.Writer
	n     int
	kept  int
	total int
}

// Run fetches the missing artifacts to opts.Dir and returns the whole bundle. Finished artifacts stay, even if other artifacts fail. Run doesn't
// download an existing artifact that matches the lock file.
func Run(ctx context.Context, opts Options) (*bundle.Bundle, error) {
	f := &fetcher{Options: opts}
	var err error
	if f.mirror, err = parseMirror(opts.Mirror); err != nil {
		return nil, err
	}
	f.defaults()
	header := &bundle.Manifest{Kubernetes: opts.Catalogue.Kubernetes, Arch: opts.Catalogue.Arch, Origin: bundle.OriginFetch}
	if f.w, err = bundle.Create(opts.Dir, header); err != nil {
		return nil, err
	}
	defer f.w.Close()
	if f.Lock == "" {
		f.Lock = filepath.Join(f.w.Dir(), LockName)
	}
	if f.lock, err = readLock(f.Lock); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(f.w.Work("downloads"), 0o755); err != nil {
		return nil, fmt.Errorf("fetch: %w", err)
	}
	if err := f.all(ctx); err != nil {
		return nil, err
	}
	for _, c := range f.Catalogue.Charts {
		if err := f.chart(ctx, c); err != nil {
			return nil, err
		}
	}
	b, err := f.w.Commit()
	if err != nil {
		return nil, err
	}
	if err := os.RemoveAll(f.w.Work("downloads")); err != nil {
		return nil, fmt.Errorf("clean up: %w", err)
	}
	if f.kept == f.total {
		fmt.Fprintf(f.Progress, "bundle %s is up to date: %s\n", b.Dir(), plural.Of(f.total, "artifact"))
	} else {
		fmt.Fprintf(f.Progress, "bundle %s is ready: %s, locked in %s\n", b.Dir(), plural.Of(f.total, "artifact"), f.Lock)
	}
	return b, nil
}

func (f *fetcher) defaults() {
	if f.Progress == nil {
		f.Progress = io.Discard
	}
	if f.Transport == nil {
		f.Transport = http.DefaultTransport
	}
	if f.Wait == nil {
		f.Wait = download.Pause
	}
	f.d = download.Client{HTTP: &http.Client{Transport: f.Transport}, Wait: f.Wait}
	f.total = len(f.Catalogue.Images) + len(f.Catalogue.Charts)
	for _, file := range f.Catalogue.Files {
		f.total += len(file.Outputs)
	}
}

// all fetches all files and images. The first failure cancels the other downloads.
func (f *fetcher) all(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	for _, file := range f.Catalogue.Files {
		g.Go(func() error { return f.file(ctx, file) })
	}
	for _, img := range f.Catalogue.Images {
		g.Go(func() error { return f.image(ctx, img) })
	}
	return g.Wait()
}

func (f *fetcher) file(ctx context.Context, file File) error {
	locked := f.lock.get(file.URL)
	if locked != "" && f.keep(locked, file.URL, file.Outputs...) {
		return nil
	}
	start := time.Now()
	sum, err := f.sum(ctx, file, locked)
	if err != nil {
		return fmt.Errorf("fetch %s: %w", path.Base(file.URL), err)
	}
	from, err := f.mirror.file(file.URL)
	if err != nil {
		return err
	}
	dst := f.w.Work("downloads", strings.ReplaceAll(strings.TrimPrefix(file.URL, "https://"), "/", "_"))
	if err := f.d.File(ctx, from, sum, dst); err != nil {
		return fmt.Errorf("fetch %s: %w", path.Base(file.URL), err)
	}
	if err := f.lock.record(file.URL, "sha256:"+sum); err != nil {
		return err
	}
	paths, err := takeOut(ctx, dst, file.Outputs)
	if err != nil {
		return fmt.Errorf("unpack %s: %w", path.Base(file.URL), err)
	}
	for i, out := range file.Outputs {
		if err := f.add(ctx, out.artifact(file.URL), inputs("sha256:"+sum, file.URL, out), paths[i], time.Since(start)); err != nil {
			return err
		}
	}
	if err := os.Remove(dst); err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("clean up: %w", err)
	}
	return nil
}

func (f *fetcher) chart(ctx context.Context, c chart.Chart) error {
	start := time.Now()
	archive, err := c.Archive()
	if err != nil {
		return err
	}
	out := Output{Name: c.Name, Kind: bundle.KindChart, Version: c.Version}
	sum := sha256.Sum256(archive)
	digest := "sha256:" + hex.EncodeToString(sum[:])
	if f.keep(digest, c.File(), out) {
		return nil
	}
	file := f.w.Work("downloads", c.File())
	if err := os.WriteFile(file, archive, 0o644); err != nil {
		return fmt.Errorf("pack chart %s: %w", c.Name, err)
	}
	return f.add(ctx, c.Artifact(), inputs(digest, c.File(), out), file, time.Since(start))
}

// sum returns the required checksum of the file: the locked checksum, or the published checksum if none is locked. If both exist, they must be equal.
func (f *fetcher) sum(ctx context.Context, file File, locked string) (string, error) {
	from, err := f.mirror.file(file.Sums)
	if err != nil {
		return "", err
	}
	sum, err := f.published(ctx, from, file.URL)
	if err != nil && locked != "" && ctx.Err() == nil {
		return strings.TrimPrefix(locked, "sha256:"), nil
	}
	if err != nil {
		return "", err
	}
	return sum, f.lock.check(file.URL, "sha256:"+sum)
}

// keep keeps a download's artifacts and returns true if all these artifacts exist.
func (f *fetcher) keep(digest, url string, outputs ...Output) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, o := range outputs {
		if !f.w.Has(o.Kind, o.Name, inputs(digest, url, o)) {
			return false
		}
	}
	for _, o := range outputs {
		f.w.Keep(o.Kind, o.Name)
		f.n++
		f.kept++
	}
	return true
}

func (f *fetcher) add(ctx context.Context, a bundle.Artifact, inputs, file string, took time.Duration) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	a, err := f.w.Add(ctx, a, inputs, file)
	if err != nil {
		return err
	}
	f.n++
	fmt.Fprintf(f.Progress, "[%2d/%d] %-10s %-24s %-9s %6.1f MB  %s\n", f.n, f.total, a.Kind, a.Name, a.Version, float64(a.Size)/1e6, took.Round(100*time.Millisecond))
	return nil
}

func (o Output) artifact(source string) bundle.Artifact {
	return bundle.Artifact{
		Name: o.Name, Version: o.Version, Kind: o.Kind, Roles: o.Roles, Source: source, Path: bundle.PathOf(o.Kind, o.Name),
	}
}

// inputs returns text that identifies an artifact by its download and by its path in the download.
func inputs(digest, url string, o Output) string {
	sum := sha256.Sum256([]byte(strings.Join(append([]string{digest, url, o.Member, o.Version}, o.Roles...), "\n")))
	return hex.EncodeToString(sum[:])
}
