package config

import (
	"cmp"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/openpai/paictl/pkg/layout"
	"github.com/openpai/paictl/pkg/secret"
)

// layout migrates the file layout.yaml of both formats.
func (m *migrator) layout() {
	d := m.docs[LayoutFile]
	l := &m.c.Layout
	l.APIVersion, l.Kind = APIVersion, layout.Kind
	m.skus(d, l)
	var ways []layout.SSH
	for i := range d.list("machine-list") {
		machine, way := m.machine(d, i)
		l.MachineList = append(l.MachineList, machine)
		ways = append(ways, way)
	}
	hoistSSH(l, ways)
	if u, err := url.Parse(d.text("kubernetes", "api-servers-url")); err == nil && u.Hostname() != "" {
		m.c.Kubernetes.Kubernetes.LoadBalanceIP = u.Hostname()
		m.note(d, noteChanged, "its host is load-balance-ip now; the API is served with TLS on port 6443", "kubernetes", "api-servers-url")
	}
	m.drop(d, "the old Kubernetes dashboard is no longer part of the platform", "kubernetes", "dashboard-url")
}

func (m *migrator) skus(d *oldDoc, l *layout.Layout) {
	l.MachineSKU = map[string]layout.SKU{}
	for _, name := range d.keys("machine-sku") {
		p := []any{"machine-sku", name}
		at := func(steps ...any) []any { return append(slices.Clone(p), steps...) }
		s := layout.SKU{Mem: oldMemory(d.text(at("mem")...)), CPU: layout.CPU{VCore: d.number(at("cpu", "vcore")...)}, OS: d.text(at("os")...)}
		if t := d.text(at("gpu", "type")...); t != "" || d.get(at("gpu")...) != nil {
			s.GPU = &layout.GPU{Type: oneWord(t), Count: d.number(at("gpu", "count")...)}
		}
		if d.get(at("computing-device")...) != nil {
			model, kind := d.text(at("computing-device", "model")...), d.text(at("computing-device", "type")...)
			if model == "" {
				model = kind
			}
			s.GPU = &layout.GPU{Type: oneWord(model), Count: d.number(at("computing-device", "count")...)}
			if kind != "nvidia.com/gpu" && kind != "" {
				m.note(d, noteChanged, "the Kubernetes resource is found from the devices; the model is gpu.type now", at("computing-device", "type")...)
			}
		}
		if s.GPU != nil && s.GPU.Count <= 0 {
			s.GPU = nil
		}
		m.placeholder(d, at, &s)
		l.MachineSKU[name] = s
	}
}

// placeholder drops hardware values that OpenPAI wrote without checking the machine, and adds a note.
func (m *migrator) placeholder(d *oldDoc, at func(...any) []any, s *layout.SKU) {
	invented := s.CPU.VCore == 1 && (s.Mem == "1Gi" || s.Mem == "") && (s.GPU == nil || s.GPU.Type == "generic")
	if invented {
		m.note(d, noteChanged, "these were placeholders, not the machine's hardware: fill in the real values and set discovered: true", at()...)
		*s = layout.SKU{}
		return
	}
	s.Discovered = !incomplete(*s)
}

var digits = regexp.MustCompile(`^[0-9]+(\.[0-9]+)?$`)

// oldMemory converts a number without a unit to GiB, as defined in OpenPAI's documentation.
func oldMemory(s string) string {
	s = strings.TrimSuffix(strings.ReplaceAll(s, " ", ""), "B")
	if digits.MatchString(s) {
		return s + "Gi"
	}
	if _, err := resource.ParseQuantity(s); err != nil {
		return ""
	}
	return s
}

func oneWord(model string) string {
	return strings.Trim(regexp.MustCompile(`[^A-Za-z0-9._-]+`).ReplaceAllString(model, "-"), "-._")
}

func (m *migrator) machine(d *oldDoc, i int) (layout.Machine, layout.SSH) {
	at := func(key string) []any { return []any{"machine-list", i, key} }
	out := layout.Machine{Hostname: d.text(at("hostname")...), HostIP: d.text(at("hostip")...), SKU: d.text(at("machine-type")...)}
	if lower := strings.ToLower(out.Hostname); lower != out.Hostname {
		m.note(d, noteChanged, "Kubernetes takes small letters only: "+lower, at("hostname")...)
		out.Hostname = lower
	}
	m.machineRoles(d, i, &out)
	// In the oldest layouts, the common properties of machines are under default-machine-properties.
	own := func(key string) string { return cmp.Or(d.text(at(key)...), d.text("default-machine-properties", key)) }
	way := layout.SSH{Username: own("username"), Password: secret.String(own("password")), KeyFile: own("keyfile-path")}
	if key := d.text(at("ssh-keyfile-path")...); way.KeyFile == "" {
		way.KeyFile = key
	}
	if way.KeyFile != "" && !path.IsAbs(way.KeyFile) && !strings.HasPrefix(way.KeyFile, "~") {
		m.note(d, noteChanged, "kept; a relative path starts in the configuration's folder now", at("keyfile-path")...)
	}
	way.SecretName = d.text(at("ssh-secret-name")...)
	if way.KeyFile == "" {
		way.SecretName = ""
		m.drop(d, "names a secret for a key, but there is no key", at("ssh-secret-name")...)
	}
	for _, key := range []string{"sshport", "ssh-port"} {
		if p := cmp.Or(d.number(at(key)...), d.number("default-machine-properties", key)); p != 0 && p != 22 {
			way.Port = p
		}
	}
	if name := d.text(at("nodename")...); name != "" && name != out.Hostname {
		m.note(d, noteChanged, fmt.Sprintf("the Kubernetes node is named after the host now: %s", out.Hostname), at("nodename")...)
	}
	if data := d.text(at("docker-data")...); data != "" && path.Clean(data) != "/var/lib/docker" {
		m.containerData(d, data, at("docker-data")...)
	}
	m.drop(d, "etcd members are named after their machine", at("etcdid")...)
	m.drop(d, "ZooKeeper is no longer part of the platform", at("zkid")...)
	m.drop(d, "the old Kubernetes dashboard is no longer part of the platform", at("dashboard")...)
	return out, way
}

// containerData sets the folder for the data of containers to the disk of Docker's data.
func (m *migrator) containerData(d *oldDoc, dockerRoot string, steps ...any) {
	root := path.Join(path.Dir(path.Clean(dockerRoot)), "containerd")
	e := &m.c.Kubernetes.Kubernetes.Extra
	if old, ok := e.Containerd["root"]; ok && old != root {
		m.note(d, noteDropped, fmt.Sprintf("all machines share one folder for containers' data, %s", old), steps...)
		return
	}
	if e.Containerd == nil {
		e.Containerd = map[string]any{}
	}
	e.Containerd["root"] = root
	m.note(d, noteChanged, "containerd replaces Docker; its data goes to the same disk: extra.containerd.root "+root, steps...)
}

// machineRoles converts k8s-role and labels, whose values are quoted strings, to roles and labels. If a role adds a label that the machine did
// not have, machineRoles sets the machine's label to "false".
func (m *migrator) machineRoles(d *oldDoc, i int, out *layout.Machine) {
	at := func(key string) []any { return []any{"machine-list", i, key} }
	role := d.text(at("k8s-role")...)
	master, worker := d.text(at("pai-master")...) == "true", d.text(at("pai-worker")...) == "true"
	labels := map[string]string{}
	switch {
	case role == "master", role == "" && master:
		out.Roles = append(out.Roles, layout.RoleMaster)
		if !master {
			labels["pai-master"] = "false"
		}
	case master:
		labels["pai-master"] = "true"
	}
	if role == "proxy" {
		m.note(d, noteChanged, "paictl runs no proxy: put this machine's address, or a load balancer's, into load-balance-ip", at("k8s-role")...)
	}
	if role == "worker" || role == "proxy" || worker || len(out.Roles) == 0 {
		out.Roles = append(out.Roles, layout.RoleWorker)
		if !worker {
			labels["pai-worker"] = "false"
		}
	}
	for _, key := range []string{"pai-storage", "no-drivers", "no-nodeexporter", "no-jobexporter", "watchdog", "node-exporter"} {
		if v := d.text(at(key)...); v != "" && badLabel(key, v) == "" {
			labels[key] = v
		}
	}
	if len(labels) > 0 {
		out.Labels = labels
	}
}
