package config

import (
	"bytes"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"

	"gopkg.in/yaml.v3"

	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/hint"
)

// VersionEdit changes the version of Kubernetes or of NVIDIA's driver in the kubernetes-configuration.yaml of a folder. The result satisfies all
// rules, but isn't written yet. The other text stays unchanged.
type VersionEdit struct {
	// Cluster is the whole configuration after the change.
	Cluster *Cluster
	// Before is the version before the change. It may be "".
	Before string

	fileEdit
}

// SetDriverVersion prepares a change of the driver version in the configuration of a folder. The version is a branch such as 570, or a release.
// The policy of the driver must be GPUDriverInstall.
func SetDriverVersion(dir, version string) (*VersionEdit, error) {
	get := func(c *Cluster) string { return c.Kubernetes.Kubernetes.GPUDriver.Version }
	return setVersion(dir, version, get, func(c *Cluster) bool { return get(c) == version }, withDriverVersion,
		fmt.Sprintf("write version: %q under kubernetes.gpu-driver by hand, then run the same command without --to", version))
}

// SetKubernetesVersion prepares a change of the Kubernetes release in the configuration of a folder. Unless bundle is "", it also changes the
// folder of the bundle.
func SetKubernetesVersion(dir, version, bundle string) (*VersionEdit, error) {
	with := func(text []byte, version string) ([]byte, error) {
		text, err := withKubernetesValue(text, "version", version)
		if err != nil || bundle == "" {
			return text, err
		}
		return withKubernetesValue(text, "bundle", strconv.Quote(bundle))
	}
	// Two bundles of one release may contain different programs. With the old bundle in the configuration, the next run would revert the programs.
	named := func(c *Cluster) bool {
		return c.Kubernetes.Kubernetes.Version == version && (bundle == "" || c.Kubernetes.Kubernetes.Bundle == bundle)
	}
	return setVersion(dir, version, func(c *Cluster) string { return c.Kubernetes.Kubernetes.Version }, named, with,
		fmt.Sprintf("write version: %s under kubernetes by hand, and bundle if it is set, then run the same command again", version))
}

// ServicesEdit changes values in the services-configuration.yaml of a folder. The result satisfies all rules, but isn't written yet.
type ServicesEdit struct {
	// Changed lists the fields that get a new value. NotEdited lists fields that can't be edited in place, because of an anchor, a tag or a merge.
	Changed, NotEdited []strictyaml.Path

	fileEdit
}

// SetServicesText prepares an edit that sets each of the given fields in the services-configuration.yaml of a folder to the same text.
func SetServicesText(dir string, fields []strictyaml.Path, text string) (*ServicesEdit, error) {
	data, c, err := loadForEdit(dir)
	if err != nil {
		return nil, err
	}
	e := &ServicesEdit{fileEdit: fileEdit{path: filepath.Join(dir, ServicesFile), before: data[ServicesFile], secret: c.HoldsSecret(ServicesFile)}}
	e.after = e.before
	for _, field := range fields {
		var doc yaml.Node
		if err := yaml.Unmarshal(e.after, &doc); err != nil {
			return nil, err
		}
		v := &doc
		if len(doc.Content) > 0 {
			v = doc.Content[0]
		}
		for _, step := range field {
			if v = valueOf(v, fmt.Sprint(step)); v == nil {
				break
			}
		}
		if v != nil && v.Value == text {
			continue
		}
		after, err := e.after, errStyle
		if v != nil {
			after, err = spliced(e.after, v, func(string) string { return text })
		}
		if err != nil {
			e.NotEdited = append(e.NotEdited, field)
			continue
		}
		e.after = after
		e.Changed = append(e.Changed, field)
	}
	after := maps.Clone(data)
	after[ServicesFile] = e.after
	c, err = Parse(dir, after)
	if err == nil {
		err = Validate(c).Err()
	}
	if err != nil {
		return nil, hint.Wrap(fmt.Errorf("%s was not changed, with this change it would break a rule: %w", ServicesFile, err), hint.Of(err))
	}
	return e, nil
}

// setVersion prepares a change of a version. The function get returns the current version. The function named reports whether a configuration
// already contains the new version and related values. The function with returns the changed text. The error contains the remedy if the text can't
// be edited without changing its style.
func setVersion(dir, version string, get func(*Cluster) string, named func(*Cluster) bool, with func(text []byte, version string) ([]byte, error), remedy string) (*VersionEdit, error) {
	data, c, err := loadForEdit(dir)
	if err != nil {
		return nil, err
	}
	e := &VersionEdit{Cluster: c, Before: get(c),
		fileEdit: fileEdit{path: filepath.Join(dir, KubernetesFile), before: data[KubernetesFile], secret: c.HoldsSecret(KubernetesFile)}}
	if e.after = e.before; named(c) {
		return e, nil
	}
	after := maps.Clone(data)
	if e.after, err = with(e.before, version); err != nil {
		return nil, hint.Wrap(fmt.Errorf("%s: %w", KubernetesFile, err), remedy)
	}
	after[KubernetesFile] = e.after
	if e.Cluster, err = Parse(dir, after); err == nil {
		err = Validate(e.Cluster).Err()
	}
	if err == nil && !named(e.Cluster) {
		err = errStyle
	}
	if err != nil {
		return nil, hint.Wrap(fmt.Errorf("%s was not changed, with this change it would break a rule: %w", KubernetesFile, err), hint.Of(err))
	}
	return e, nil
}

func withKubernetesValue(text []byte, field, value string) ([]byte, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, err
	}
	v := &doc
	if len(doc.Content) > 0 {
		v = doc.Content[0]
	}
	for _, key := range []string{"kubernetes", field} {
		if v = valueOf(v, key); v == nil {
			return nil, fmt.Errorf("it has no %s", key)
		}
	}
	return spliced(text, v, func(string) string { return value })
}

// withDriverVersion returns the text with a new version in the section kubernetes.gpu-driver. It replaces the existing value, or inserts a line
// after the policy.
func withDriverVersion(text []byte, version string) ([]byte, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, err
	}
	driver := &doc
	if len(doc.Content) > 0 {
		driver = doc.Content[0]
	}
	for _, key := range []string{"kubernetes", "gpu-driver"} {
		if driver = valueOf(driver, key); driver == nil {
			return nil, fmt.Errorf("it has no %s", key)
		}
	}
	quoted := strconv.Quote(version)
	if v := valueOf(driver, "version"); v != nil {
		return spliced(text, v, func(string) string { return quoted })
	}
	policy := valueOf(driver, "policy")
	if policy == nil {
		return nil, fmt.Errorf("gpu-driver has no policy")
	}
	if driver.Style&yaml.FlowStyle != 0 {
		return spliced(text, policy, func(old string) string { return old + ", version: " + quoted })
	}
	out, err := spliced(text, policy, func(old string) string { return old })
	if err != nil {
		return nil, err
	}
	lines := bytes.SplitAfter(out, []byte("\n"))
	// Take the indentation from the first key, because an anchor of the section may be in another column.
	line := bytes.Repeat([]byte(" "), driver.Content[0].Column-1)
	line = append(line, "version: "+quoted...)
	if bytes.HasSuffix(lines[policy.Line-1], []byte("\r\n")) {
		line = append(line, '\r')
	}
	line = append(line, '\n')
	if last := lines[policy.Line-1]; !bytes.HasSuffix(last, []byte("\n")) {
		lines[policy.Line-1] = append(slices.Clone(last), '\n')
	}
	return bytes.Join(slices.Insert(lines, policy.Line, line), nil), nil
}

// spliced returns the text with a new value for v, which must be on one line.
func spliced(text []byte, v *yaml.Node, by func(old string) string) ([]byte, error) {
	old := v.Value
	if old == "" && v.Style == 0 {
		return nil, errStyle // an empty value has no position for a text
	}
	switch v.Style {
	case yaml.DoubleQuotedStyle:
		old = `"` + old + `"`
	case yaml.SingleQuotedStyle:
		old = "'" + old + "'"
	case 0:
	default:
		return nil, errStyle
	}
	lines := bytes.SplitAfter(text, []byte("\n"))
	if v.Kind != yaml.ScalarNode || v.Line > len(lines) {
		return nil, errStyle
	}
	line := lines[v.Line-1]
	// yaml.v3 counts columns in characters, not in bytes.
	chars := []rune(string(line))
	at := min(v.Column-1, len(chars))
	rest, ok := bytes.CutPrefix([]byte(string(chars[at:])), []byte(old))
	if !ok {
		return nil, errStyle
	}
	lines[v.Line-1] = slices.Concat([]byte(string(chars[:at])), []byte(by(old)), rest)
	return bytes.Join(lines, nil), nil
}
