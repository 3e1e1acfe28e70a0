package fetch

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"slices"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/openpai/paictl/pkg/cluster/bundle"
	"github.com/openpai/paictl/pkg/cluster/bundle/download"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/release"
	"github.com/openpai/paictl/pkg/ui/plural"
)

// ReleaseOptions holds the arguments of FromRelease and FindRelease.
type ReleaseOptions struct {
	// Dir is the bundle's folder. FromRelease creates it if it doesn't exist.
	Dir string
	// Address is the base URL of published releases.
	Address string
	// Mirror is the URL of a mirror for Address, as in Options; "" means no mirror.
	Mirror string
	// Version and Arch select the bundle.
	Version, Arch string
	// Key is the public key that verifies the release.
	Key release.Key
	// Progress receives lines about the download and one line per artifact. It may be nil.
	Progress io.Writer
	// Transport sends the requests; nil means http.DefaultTransport.
	Transport http.RoundTripper
	// Wait waits after a failed attempt; nil means pauses of increasing length.
	Wait func(ctx context.Context, attempt int) error
}

// Archive is the file of a release that contains a bundle.
type Archive struct {
	Release string // its version
	Name    string
	URL     string
	SHA256  string
	Key     string // the ID of the key that signed the release
}

type released struct {
	ReleaseOptions
	d       download.Client
	w       *bundle.Writer
	archive Archive
	n       int // artifacts in place
}

// FromRelease fetches the bundle that the project publishes with a release as one archive. It resumes an interrupted download. It verifies the
// archive against the release's signed checksums, so an untrusted server may provide the archive.
func FromRelease(ctx context.Context, opts ReleaseOptions) (*bundle.Bundle, error) {
	r, err := newReleased(opts)
	if err != nil {
		return nil, err
	}
	if r.archive, err = r.find(ctx); err != nil {
		return nil, err
	}
	var header bundle.Manifest
	if r.w, err = bundle.Create(opts.Dir, &header); err != nil {
		return nil, err
	}
	defer r.w.Close()
	if have, err := bundle.Open(opts.Dir); err == nil && r.complete(have.Manifest()) {
		header = have.Manifest()
		fmt.Fprintf(r.Progress, "bundle %s is up to date: %s of %s\n", have.Dir(), plural.Of(r.n, "artifact"), r.archive.Release)
		return r.w.Commit()
	}
	if err := os.MkdirAll(r.w.Work("downloads"), 0o755); err != nil {
		return nil, fmt.Errorf("fetch: %w", err)
	}
	file := r.w.Work("downloads", r.archive.Name)
	if err := r.d.File(ctx, r.archive.URL, r.archive.SHA256, file); err != nil {
		return nil, fmt.Errorf("fetch %s: %w", r.archive.Name, err)
	}
	m, err := r.unpack(ctx, file)
	if err != nil {
		return nil, fmt.Errorf("unpack %s: %w", r.archive.Name, err)
	}
	header = *m
	b, err := r.w.Commit()
	if err != nil {
		return nil, err
	}
	if err := os.RemoveAll(r.w.Work("downloads")); err != nil {
		return nil, fmt.Errorf("clean up: %w", err)
	}
	fmt.Fprintf(r.Progress, "bundle %s is ready: %s of %s\n", b.Dir(), plural.Of(r.n, "artifact"), r.archive.Release)
	return b, nil
}

// FindRelease returns the archive that FromRelease would download.
func FindRelease(ctx context.Context, opts ReleaseOptions) (Archive, error) {
	r, err := newReleased(opts)
	if err != nil {
		return Archive{}, err
	}
	return r.find(ctx)
}

func newReleased(opts ReleaseOptions) (*released, error) {
	m, err := parseMirror(opts.Mirror)
	if err != nil {
		return nil, err
	}
	if opts.Address, err = m.file(opts.Address); err != nil {
		return nil, err
	}
	if opts.Progress == nil {
		opts.Progress = io.Discard
	}
	if opts.Wait == nil {
		opts.Wait = download.Pause
	}
	transport := opts.Transport
	if transport == nil {
		transport = http.DefaultTransport
	}
	r := &released{ReleaseOptions: opts}
	r.d = download.Client{HTTP: &http.Client{Transport: transport}, Wait: opts.Wait, Report: r.report()}
	return r, nil
}

// find reads the signed checksums of the release and returns the archive for the architecture.
func (r *released) find(ctx context.Context) (Archive, error) {
	list, err := release.Get(ctx, r.d, r.Address, r.Version, r.Key)
	if s, ok := errors.AsType[*download.StatusError](err); ok && s.Code == http.StatusNotFound {
		return Archive{}, hint.Wrap(err, "if "+r.Version+" wasn't released there, fetch from upstream's projects, paictl bundle fetch --from upstream, or build: paictl bundle build")
	}
	if err != nil {
		return Archive{}, err
	}
	a := Archive{Release: list.Version, Name: release.BundleArchive(r.Version, r.Arch), Key: list.Key.String()}
	if a.SHA256, err = list.Sum(a.Name); err != nil {
		return Archive{}, hint.Wrap(err, "the release has no bundle for "+r.Arch+"; build it on a machine of that architecture: paictl bundle build")
	}
	a.URL = release.URL(r.Address, r.Version, a.Name)
	return a, nil
}

const step = 10

// report returns a function that prints a line after each step percent of a download.
func (r *released) report() func(have, total int64) {
	next := int64(step)
	return func(have, total int64) {
		for total > 0 && next < 100 && have*100/total >= next {
			fmt.Fprintf(r.Progress, "%3d %% of %.1f MB\n", next, float64(total)/1e6)
			next += step
		}
	}
}

// inputs returns text that identifies a file by the checksum of its archive.
func (r *released) inputs(a bundle.Artifact) string { return r.archive.SHA256 + " " + a.Path }

// complete reports whether all artifacts of a bundle, except driver packages, are unmodified files of the archive. In that case, it keeps the
// artifacts.
func (r *released) complete(m bundle.Manifest) bool {
	mine := slices.DeleteFunc(slices.Clone(m.Artifacts), func(a bundle.Artifact) bool { return a.Kind == bundle.KindDriver })
	if len(mine) == 0 || slices.ContainsFunc(mine, func(a bundle.Artifact) bool { return !r.w.Has(a.Kind, a.Name, r.inputs(a)) }) {
		return false
	}
	for _, a := range mine {
		r.w.Keep(a.Kind, a.Name)
	}
	r.n = len(mine)
	return true
}

// unpack extracts the files of the archive into the bundle. It returns the manifest, which is the first file in the archive.
func (r *released) unpack(ctx context.Context, file string) (*bundle.Manifest, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	zr, err := zstd.NewReader(f, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	defer zr.Close()
	tr := tar.NewReader(zr)
	h, err := tr.Next()
	if err != nil {
		return nil, err
	}
	if h.Name != bundle.ManifestFile {
		return nil, fmt.Errorf("its first file is %q, not %s", h.Name, bundle.ManifestFile)
	}
	text, err := io.ReadAll(tr)
	if err != nil {
		return nil, err
	}
	m, err := bundle.ParseManifest(bundle.ManifestFile, text)
	if err != nil {
		return nil, err
	}
	if m.Arch != r.Arch {
		return nil, fmt.Errorf("it is a bundle for %s, not for %s", m.Arch, r.Arch)
	}
	m.Origin = bundle.OriginFetch // another fetch repairs a damaged file
	missing := map[string]bundle.Artifact{}
	for _, a := range m.Artifacts {
		missing[a.Path] = a
	}
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		a, ok := missing[h.Name]
		if !ok || a.Kind == bundle.KindDriver {
			return nil, fmt.Errorf("its manifest doesn't list %q", h.Name)
		}
		delete(missing, h.Name)
		if err := r.place(ctx, a, tr, len(m.Artifacts)); err != nil {
			return nil, err
		}
	}
	for name := range missing {
		return nil, fmt.Errorf("it contains no file %s", name)
	}
	return m, nil
}

// place writes one file into the bundle, unless an interrupted run has already written it.
func (r *released) place(ctx context.Context, a bundle.Artifact, src io.Reader, total int) error {
	if r.w.Has(a.Kind, a.Name, r.inputs(a)) {
		r.w.Keep(a.Kind, a.Name)
		r.n++
		return nil
	}
	start := time.Now()
	file := r.w.Work("downloads", path.Base(a.Path))
	h := sha256.New()
	if err := writeFile(file, io.TeeReader(src, h)); err != nil {
		return err
	}
	// Check the file before Add records it. Otherwise the next run would accept a damaged file.
	if sum := hex.EncodeToString(h.Sum(nil)); sum != a.SHA256 {
		return fmt.Errorf("%s has sha256 %s, but the manifest says %s", a.Path, sum, a.SHA256)
	}
	a, err := r.w.Add(ctx, a, r.inputs(a), file)
	if err != nil {
		return err
	}
	r.n++
	fmt.Fprintf(r.Progress, "[%2d/%d] %-10s %-24s %-9s %6.1f MB  %s\n", r.n, total, a.Kind, a.Name, a.Version, float64(a.Size)/1e6, time.Since(start).Round(100*time.Millisecond))
	return nil
}
