package config

import (
	"fmt"
	"strings"

	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/layout"
	"github.com/openpai/paictl/pkg/secret"
)

// Render returns the texts of the four files, with comments.
func (c *Cluster) Render() (map[string][]byte, error) {
	contents, err := c.contents()
	if err != nil {
		return nil, err
	}
	out := map[string][]byte{}
	for name, v := range contents {
		b, err := strictyaml.Encode(v, c.comments(name))
		if err != nil {
			return nil, fmt.Errorf("write %s: %w", name, err)
		}
		out[name] = b
	}
	return out, nil
}

func (c *Cluster) contents() (map[string]any, error) {
	out := map[string]any{LayoutFile: c.Layout, KubernetesFile: c.Kubernetes, RolesFile: c.Roles, ServicesFile: c.Services}
	if c.IsManaged() {
		return out, nil
	}
	known, err := withoutEmpty(c.Kubernetes)
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", KubernetesFile, err)
	}
	out[KubernetesFile] = known
	return out, nil
}

// comments returns the comments of a generated file: the comment at its beginning, the description of each field, and marks for fields that the user
// must fill in.
func (c *Cluster) comments(name string) strictyaml.Comments {
	out := strictyaml.Comments{"": fileHead(name)}
	docs := fieldDocs(name)
	if !c.IsManaged() {
		docs = existingDocs(name, docs)
		out[""] = existingHead(name)
	}
	for field, text := range docs {
		// Skip apiVersion and kind, which need no explanation. Entries of lists can't have comments.
		if field != "apiVersion" && field != "kind" && !strings.ContainsAny(field, "*[") {
			out[field] = wrap(text, 96)
		}
	}
	if name == LayoutFile {
		for _, sku := range skuNames(c.Layout) {
			if !c.Layout.MachineSKU[sku].Discovered {
				out["machine-sku."+sku] = "Not read from a machine: fill in mem (such as 512Gi), cpu.vcore, os (such as ubuntu22.04) and,\n" +
					"if it has GPUs, gpu: {type: NVIDIA-A100-SXM4-80GB, count: 8}. Then set discovered: true."
			}
		}
	}
	if name == KubernetesFile && c.IsManaged() && len(c.Kubernetes.Kubernetes.ClusterDNS) == 0 {
		out["kubernetes.cluster-dns"] += "\nNone is known yet: fill in at least one, such as [10.0.0.53]. While the list is empty, cluster\nDNS forwards to the servers in each machine's /etc/resolv.conf."
	}
	return out
}

func fileHead(name string) string {
	switch name {
	case LayoutFile:
		return "The machines of the cluster. Written by \"paictl config generate\"; you can edit it.\n" +
			"Check it with \"paictl config validate\"; apply it with \"paictl cluster up\"."
	case KubernetesFile:
		return "Kubernetes as paictl installs it. Written by \"paictl config generate\"; you can edit it."
	case RolesFile:
		return "Definitions of the roles in layout.yaml. Written by \"paictl config generate\"; you\ncan edit it: add roles, change labels and taints."
	default:
		return "The platform's services. Written by \"paictl config generate\"; you can edit it: a section\nper service, named after it, overrides that service's defaults."
	}
}

func wrap(text string, width int) string {
	var b strings.Builder
	column := 0
	for w := range strings.FieldsSeq(text) {
		switch {
		case column == 0:
		case column+1+len(w) > width:
			b.WriteByte('\n')
			column = 0
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(w)
		column += len(w)
	}
	return b.String()
}

// Masked returns a copy of the configuration with secret.Mask in place of each secret. The argument secrets contains paths in
// services-configuration.yaml. All values below these paths are secret. Masked also masks fields whose names look secret.
func (c *Cluster) Masked(secrets ...strictyaml.Path) *Cluster {
	m := *c
	mask(&m.Layout.SSH.Password)
	m.Layout.MachineList = append([]layout.Machine(nil), c.Layout.MachineList...)
	for i := range m.Layout.MachineList {
		if s := m.Layout.MachineList[i].SSH; s != nil {
			masked := *s
			mask(&masked.Password)
			m.Layout.MachineList[i].SSH = &masked
		}
	}
	mask(&m.Kubernetes.Kubernetes.Proxy.HTTP)
	mask(&m.Kubernetes.Kubernetes.Proxy.HTTPS)
	mask(&m.Services.Cluster.DockerRegistry.Password)
	m.Services.Sections = maskSections(c.Services.Sections)
	for _, p := range secrets {
		maskPath(m.Services.Sections, p)
	}
	return &m
}

func mask(s *secret.String) {
	if s.IsSet() {
		*s = secret.Mask
	}
}

// maskSections masks values that look secret in sections without a known schema. It masks too many values rather than too few.
func maskSections(in map[string]any) map[string]any {
	if in == nil {
		return nil
	}
	out := make(map[string]any, len(in))
	for k, v := range in {
		out[k] = maskAny(k, v)
	}
	return out
}

func maskAny(key string, v any) any {
	switch x := v.(type) {
	case map[string]any:
		return maskSections(x)
	case []any:
		out := make([]any, len(x))
		for i, e := range x {
			out[i] = maskAny(key, e)
		}
		return out
	case nil:
		return nil
	}
	if looksSecret(key) && v != "" {
		return secret.Mask
	}
	return v
}

// maskPath masks the value at a path and all values inside it.
func maskPath(v any, p fieldPath) any {
	if len(p) == 0 {
		return maskAll(v)
	}
	switch x := v.(type) {
	case map[string]any:
		if key, ok := p[0].(string); ok && x[key] != nil {
			x[key] = maskPath(x[key], p[1:])
		}
	case []any:
		if i, ok := p[0].(int); ok && i >= 0 && i < len(x) {
			x[i] = maskPath(x[i], p[1:])
		}
	}
	return v
}

func maskAll(v any) any {
	switch x := v.(type) {
	case map[string]any:
		for k, e := range x {
			x[k] = maskAll(e)
		}
		return x
	case []any:
		for i, e := range x {
			x[i] = maskAll(e)
		}
		return x
	case nil:
		return nil
	}
	if v == "" {
		return v
	}
	return secret.Mask
}

func looksSecret(key string) bool {
	k := strings.ToLower(key)
	if strings.HasSuffix(k, "secret-name") || strings.HasSuffix(k, "path") || strings.HasSuffix(k, "expire-time") {
		return false
	}
	for _, w := range []string{"password", "passwd", "passphrase", "secret", "token", "account-key", "account_key", "accountkey", "private-key", "credential", "smbpwd", "api-key"} {
		if strings.Contains(k, w) {
			return true
		}
	}
	return false
}

// HoldsSecret reports whether a file of the configuration contains secrets. Only its owner may read such a file.
func (c *Cluster) HoldsSecret(name string) bool {
	switch name {
	case LayoutFile:
		if c.Layout.SSH.Password.IsSet() {
			return true
		}
		for _, m := range c.Layout.MachineList {
			if m.SSH != nil && m.SSH.Password.IsSet() {
				return true
			}
		}
		return false
	case KubernetesFile:
		p := c.Kubernetes.Kubernetes.Proxy
		return hasPassword(p.HTTP) || hasPassword(p.HTTPS)
	case ServicesFile:
		return true // sooner or later, services have passwords in it
	}
	return false
}
