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

// RuleRelease is the rule of findings of checkRelease. Such findings prevent services from being started, but not from being inspected.
const RuleRelease = "services/release"

// checkRelease rejects images of another release, because programs and charts must have the same release. It ignores tags that don't look like
// releases, and does nothing if paictl was built without a version.
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

// CheckMachines is like Check, but allows images of another release. It is for commands that neither copy images nor start services.
func CheckMachines(cfg *config.Cluster) config.Findings {
	return slices.DeleteFunc(Check(cfg), func(f config.Finding) bool { return f.Rule == RuleRelease })
}

// CheckUpgrade is like Check, but allows images of an earlier release. It is for a command that writes this paictl's release into the configuration.
func CheckUpgrade(cfg *config.Cluster) config.Findings {
	if _, _, later, err := OtherRelease(cfg); err != nil || later {
		return Check(cfg)
	}
	return CheckMachines(cfg)
}

// OtherRelease returns the fields of services-configuration.yaml whose images have another release than this paictl. own is the image tag of this
// paictl, and later reports whether at least one of the other releases is later.
func OtherRelease(cfg *config.Cluster) (fields []strictyaml.Path, own string, later bool, err error) {
	c, _, err := Load(context.Background(), cfg, Options{})
	if err != nil {
		return nil, "", false, err
	}
	return c.otherRelease, version.Tag(), c.laterRelease, nil
}

// LaterPaictl reports whether version a of paictl is later than version b. It returns false for two builds of the same version.
func LaterPaictl(a, b string) bool {
	x, err := semver.NewVersion(a)
	if err != nil {
		return false
	}
	y, err := semver.NewVersion(b)
	return err == nil && x.GreaterThan(y)
}

// eachOwnImage calls f with each image tag of paictl's own images in a service's values. It skips images whose values also set a digest, which
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

// checkValues checks each embedded service's values against its chart's schema, and then moves the secrets out of the values.
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

// sectionPath returns the field of an upstream service's section that sets a value.
func sectionPath(s *Service, p strictyaml.Path) strictyaml.Path {
	if len(p) > 0 {
		if key, ok := p[0].(string); ok && s.secretValues[key] != nil && s.Values[key] == nil {
			return at(s.Name, keySecretValues).With(p...)
		}
	}
	return at(s.Name, keyValues).With(p...)
}
