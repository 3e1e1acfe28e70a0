package config

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

var driverVersion = regexp.MustCompile(`^[1-9][0-9]{2}(\.[0-9]{1,3}(\.[0-9]{2,3})?)?$`)

// WithDefaults returns the settings with defaults for the empty fields.
func (d GPUDriver) WithDefaults() GPUDriver {
	return GPUDriver{
		Policy: cmp.Or(d.Policy, GPUDriverKeep), Version: d.Version,
		Module: cmp.Or(d.Module, GPUModuleAuto), Source: cmp.Or(d.Source, GPUSourceDistribution),
	}
}

func driverPolicies() []string { return []string{GPUDriverKeep, GPUDriverInstall, GPUDriverNone} }
func driverModules() []string  { return []string{GPUModuleAuto, GPUModuleOpen, GPUModuleClosed} }
func driverSources() []string {
	return []string{GPUSourceDistribution, GPUSourceNVIDIA, GPUSourceBundle}
}

func (k *checker) checkGPUDriver() {
	given, p := k.c.Kubernetes.Kubernetes.GPUDriver, where("kubernetes", "gpu-driver")
	d := given.WithDefaults()
	const rule = "kubernetes/gpu-driver"
	oneOf := func(field, value string, values []string) {
		if !slices.Contains(values, value) {
			k.kube.fail(p.With(field), rule, fmt.Sprintf("%q is not one of %s", value, strings.Join(values, ", ")), "the default is "+values[0])
		}
	}
	oneOf("policy", d.Policy, driverPolicies())
	oneOf("module", d.Module, driverModules())
	oneOf("source", d.Source, driverSources())
	if d.Version != "" && !driverVersion.MatchString(d.Version) {
		k.kube.fail(p.With("version"), rule, fmt.Sprintf("%q is not a version of NVIDIA's driver", d.Version), `write a branch such as "535", or a release such as "535.261.03"`)
	}
	if d.Policy == GPUDriverInstall {
		return
	}
	for _, f := range []struct{ field, value string }{{"module", given.Module}, {"source", given.Source}, {"version", given.Version}} {
		if f.value != "" && (f.field != "version" || d.Policy == GPUDriverNone) {
			k.kube.warn(p.With(f.field), rule, "has no effect: paictl installs no driver (policy: "+d.Policy+")", "write policy: install, or remove it")
		}
	}
}
