package catalogue

import (
	"context"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"

	"github.com/Masterminds/semver/v3"

	"github.com/openpai/paictl"
	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/version"
)

// release matches the image tags of a release of paictl, or of a commit after a release.
var release = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+(-rc\.[0-9]+)?(-[0-9]+-g[0-9a-f]{7,40})?(-dev_[0-9a-f]{7,40})?(-dirty)?$`)

// RuleRelease is the rule of the findings of checkRelease. These findings prevent services from starting. Commands that only read services ignore
// these findings.
const RuleRelease = "services/release"

// checkRelease rejects images of another release, because programs and charts must have the same release. checkRelease ignores tags that don't have
// the form of a release. checkRelease returns no results if paictl was built without a version.
func (b *builder) checkRelease() (other []strictyaml.Path, later bool) {
	own := version.Tag()
	if !release.MatchString(own) {
		return nil, false
	}
	check := func(p strictyaml.Path, tag string) {
		if key := p[len(p)-1]; tag != own && release.MatchString(tag) {
			other = append(other, p)
			later = later || LaterPaictl(version.OfTag(tag), version.Version)
			b.fail(p, RuleRelease, fmt.Sprintf("the images of %s don't match this paictl, which is %s", tag, version.Version),
				fmt.Sprintf("set %s: %s, and install its images with \"paictl cluster up\" or \"paictl image push\"; or continue to use paictl %s", key, own, tag))
		}
	}
	check(strictyaml.Path{"cluster", "docker-registry", "docker-tag"}, b.cfg.Services.Cluster.DockerRegistry.Tag)
	for _, name := range sorted(maps.Keys(b.services)) {
		if s := b.services[name]; s.Upstream == nil && s.Enabled {
			eachOwnImage(at(name), merge(b.embedded[name].Values, s.Values), check)
		}
	}
	return other, later
}

// CheckMachines is like Check, but allows images of another release. CheckMachines is for commands that don't copy images and don't start services.
func CheckMachines(cfg *config.Cluster) config.Findings {
	return slices.DeleteFunc(Check(cfg), func(f config.Finding) bool { return f.Rule == RuleRelease })
}

// CheckUpgrade is like Check, but allows images of an earlier release. CheckUpgrade is for a command that writes this paictl's release to the
// configuration.
func CheckUpgrade(cfg *config.Cluster) config.Findings {
	if _, _, later, err := OtherRelease(cfg); err != nil || later {
		return Check(cfg)
	}
	return CheckMachines(cfg)
}

// OtherRelease returns the fields of services-configuration.yaml whose images have another release than this paictl. own is the image tag of this
// paictl. later reports whether at least one of the images has a later release.
func OtherRelease(cfg *config.Cluster) (fields []strictyaml.Path, own string, later bool, err error) {
	c, _, err := Load(context.Background(), cfg, Options{})
	if err != nil {
		return nil, "", false, err
	}
	return c.otherRelease, version.Tag(), c.laterRelease, nil
}

// LaterPaictl reports whether a is a later version of paictl than b. LaterPaictl returns false for two builds of the same version.
func LaterPaictl(a, b string) bool {
	x, err := semver.NewVersion(a)
	if err != nil {
		return false
	}
	y, err := semver.NewVersion(b)
	return err == nil && x.GreaterThan(y)
}

// eachOwnImage calls f with each image tag of paictl's own images in a service's values. eachOwnImage skips images with a digest, because the digest
// overrides the tag.
func eachOwnImage(p strictyaml.Path, values map[string]any, f func(strictyaml.Path, string)) {
	repository, named := values["repository"].(string)
	digest, _ := values["digest"].(string)
	own := named && repository == "" || slices.Contains(paictl.Programs(), path.Base(repository))
	if tag, ok := values["tag"].(string); ok && own && digest == "" {
		f(p.With("tag"), tag)
	}
	for _, key := range sorted(maps.Keys(values)) {
		if inner, ok := values[key].(map[string]any); ok {
			eachOwnImage(p.With(key), inner, f)
		}
	}
}

// checkValues checks the values of each embedded service against the chart's schema. Then checkValues moves the secrets from the values to the
// credentials.
func (b *builder) checkValues() {
	for _, name := range sorted(maps.Keys(b.services)) {
		s := b.services[name]
		if s.Upstream != nil {
			continue
		}
		c := b.embedded[name]
		values := merge(c.Values, s.Values)
		for _, p := range c.schema.check(values) {
			b.fail(at(name, p.path...), "services/values", p.message, p.remedy)
		}
		b.checkResources(at(name), s.Values, values)
		b.takeSecrets(s, c.schema)
	}
}

// sectionPath returns the field that sets a value in the section of an upstream service.
func sectionPath(s *Service, p strictyaml.Path) strictyaml.Path {
	if len(p) > 0 {
		if key, ok := p[0].(string); ok && s.secretValues[key] != nil && s.Values[key] == nil {
			return at(s.Name, keySecretValues).With(p...)
		}
	}
	return at(s.Name, keyValues).With(p...)
}
