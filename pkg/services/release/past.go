package release

import (
	"cmp"
	"context"
	"strconv"

	"helm.sh/helm/v3/pkg/chartutil"
	helmrelease "helm.sh/helm/v3/pkg/release"
)

type past struct {
	// last is the newest record, or nil if no record exists.
	last *helmrelease.Release
	// base is the deployed revision. If no record has the status deployed, base is the newest revision that was deployed before. base is nil if no
	// revision was ever deployed.
	base *helmrelease.Release
	// cut means that the last run failed or was killed.
	cut bool
	// leaving means that the last run was an uninstall and was killed.
	leaving bool
	// proven is the revision before base if base is an upgrade that hasn't been ready yet. Otherwise, proven is 0.
	proven int
}

func (s *session) past(ctx context.Context, name string) (past, error) {
	h, err := readHistory(ctx, s.client, s.namespace, name)
	if err != nil {
		return past{}, err
	}
	p, err := h.judge()
	p.proven = h.proven(p.base)
	return p, err
}

// proven returns the number of the revision before an upgrade that hasn't been ready yet. proven returns 0 if base isn't such an upgrade, or if the
// record of the previous revision doesn't exist.
func (h history) proven(base *helmrelease.Release) int {
	if base == nil {
		return 0
	}
	for _, r := range h {
		if strconv.Itoa(r.revision) == base.Labels[labelFrom] && r.revision < base.Version {
			return r.revision
		}
	}
	return 0
}

// judge derives the state of the release from the states of its revisions.
func (h history) judge() (past, error) {
	if len(h) == 0 {
		return past{}, nil
	}
	last, err := h[0].full()
	if err != nil {
		return past{}, err
	}
	p := past{last: last}
	switch h[0].status {
	case helmrelease.StatusDeployed:
		p.base = last
		return p, nil
	case helmrelease.StatusUninstalled:
		return p, nil
	case helmrelease.StatusUninstalling:
		p.cut, p.leaving = true, true
		return p, nil
	}
	p.cut = true
	p.base, err = h.deployed(last)
	return p, err
}

// deployed returns the revision in the cluster. A run may have been killed after it marked the old revision as superseded and before it marked the
// new revision as deployed. In this case, deployed returns the new revision.
func (h history) deployed(last *helmrelease.Release) (*helmrelease.Release, error) {
	was := false
	for _, r := range h {
		switch r.status {
		case helmrelease.StatusDeployed:
			return r.full()
		case helmrelease.StatusSuperseded:
			was = true
		}
	}
	if was {
		return last, nil
	}
	return nil, nil
}

// next returns the options for rendering the next revision.
func (p past) next() chartutil.ReleaseOptions {
	if p.base == nil {
		return chartutil.ReleaseOptions{Revision: 1, IsInstall: true}
	}
	return chartutil.ReleaseOptions{Revision: p.last.Version + 1, IsUpgrade: true}
}

// again returns the options of the deployed revision's rendering.
func (p past) again() chartutil.ReleaseOptions {
	first := p.base.Version == 1
	return chartutil.ReleaseOptions{Revision: p.base.Version, IsInstall: first, IsUpgrade: !first}
}

// previous returns the number of the revision for a rollback, or 0 if no earlier revision exists.
func (p past) previous() int {
	if p.base == nil {
		return 0
	}
	return cmp.Or(p.proven, p.base.Version)
}

// attempt returns the unfinished revision of a failed or killed run. attempt returns nil if no such revision exists or the revision is the base.
func (p past) attempt() *helmrelease.Release {
	if !p.cut || p.leaving || p.last == p.base {
		return nil
	}
	return p.last
}
