package fetch

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"sort"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/helmpath"
	"helm.sh/helm/v3/pkg/repo"
	"sigs.k8s.io/yaml"

	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/services/catalogue"
	"github.com/openpai/paictl/pkg/version"
)

// fromServer downloads a chart over HTTP. The reference is the URL of an archive, or of a repository with an index that lists the archive.
func (f *Fetcher) fromServer(ctx context.Context, ref catalogue.ChartRef) ([]byte, error) {
	base, err := url.Parse(ref.Chart)
	if err != nil {
		return nil, err
	}
	s := &server{client: &http.Client{Transport: guarded{f.Transport, plainHost(ref)}}}
	wanted := base.Fragment
	base.Fragment = ""
	s.home = base
	s.user, s.password = f.login(base)
	archive, digest := base.String(), ""
	if wanted != "" {
		if archive, digest, err = s.find(ctx, wanted, ref.Version); err != nil {
			return nil, err
		}
	}
	data, err := s.get(ctx, archive, maxArchive)
	if err != nil {
		return nil, err
	}
	got := digestOf(data)
	if ref.Digest != "" && got != ref.Digest {
		return nil, wrongDigest(ref, got)
	}
	if digest != "" && got != digest {
		return nil, hint.Errorf("the repository is being changed, or the chart was replaced; ask its maintainer",
			"%s has the digest %s, but the repository's index says %s", archive, got, digest)
	}
	return data, nil
}

type server struct {
	client         *http.Client
	home           *url.URL
	user, password string
}

func (s *server) get(ctx context.Context, address string, limit int64) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("User-Agent", "paictl/"+version.Version)
	// A repository may store archives on another host. The login is sent only to the repository's own host.
	if s.user != "" && r.URL.Host == s.home.Host && r.URL.Scheme == s.home.Scheme {
		r.SetBasicAuth(s.user, s.password)
	}
	answer, err := s.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		_, _ = io.CopyN(io.Discard, answer.Body, 1<<10)
		return nil, &statusError{r.URL.Redacted(), answer.StatusCode}
	}
	return readLimited(answer.Body, limit)
}

// find looks up a chart in the repository's index, and returns the URL and the digest of the archive.
func (s *server) find(ctx context.Context, wanted, release string) (address, digest string, err error) {
	data, err := s.get(ctx, s.home.JoinPath("index.yaml").String(), maxIndex)
	if err != nil {
		return "", "", err
	}
	var index repo.IndexFile
	if err := yaml.Unmarshal(data, &index); err != nil {
		return "", "", hint.Errorf("check the address: a repository of charts has a file index.yaml", "the repository's index is not readable: %v", err)
	}
	versions, ok := index.Entries[wanted]
	if !ok {
		remedy := "check the name after #"
		if near := strictyaml.Nearest(wanted, slices.Sorted(maps.Keys(index.Entries))); near != "" {
			remedy = fmt.Sprintf("did you mean %q?", near)
		}
		return "", "", hint.Errorf(remedy, "the repository has no chart %s", wanted)
	}
	var there []string
	for _, v := range versions {
		if v == nil || v.Metadata == nil || len(v.URLs) == 0 {
			continue
		}
		if strings.TrimPrefix(v.Version, "v") == strings.TrimPrefix(release, "v") {
			return s.address(v)
		}
		there = append(there, v.Version)
	}
	if len(there) == 0 {
		return "", "", fmt.Errorf("the repository has no version of %s", wanted)
	}
	return "", "", noVersion(release, there)
}

func (s *server) address(v *repo.ChartVersion) (address, digest string, err error) {
	if strings.HasPrefix(v.URLs[0], "oci://") {
		return "", "", hint.Errorf("write that as chart", "the repository keeps the chart in a registry: %s", v.URLs[0])
	}
	address, err = repo.ResolveReferenceURL(s.home.String(), v.URLs[0])
	if v.Digest != "" {
		digest = "sha256:" + strings.TrimPrefix(v.Digest, "sha256:")
	}
	return address, digest, err
}

// login returns the login for a server. For the host of cluster.docker-registry, the login comes from the configuration. For other hosts, "helm repo
// add" has stored the login.
func (f *Fetcher) login(base *url.URL) (user, password string) {
	if (logins{f.Registry}).sameHost(base) {
		return f.Registry.Username, f.Registry.Password.Reveal()
	}
	file, err := repo.LoadFile(helmpath.ConfigPath("repositories.yaml"))
	if err != nil {
		return "", ""
	}
	for _, e := range file.Repositories {
		if e != nil && strings.TrimRight(e.URL, "/") == strings.TrimRight(base.String(), "/") {
			return e.Username, e.Password
		}
	}
	return "", ""
}

// sortVersions sorts versions. The newest version comes first, and invalid versions come last.
func sortVersions(all []string) {
	versions := make(repo.ChartVersions, len(all))
	for i, v := range all {
		versions[i] = &repo.ChartVersion{Metadata: &chart.Metadata{Version: v}}
	}
	sort.Stable(sort.Reverse(versions))
	for i, v := range versions {
		all[i] = v.Version
	}
}
