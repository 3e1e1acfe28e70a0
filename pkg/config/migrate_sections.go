package config

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// migratedServices maps services to the functions that migrate their sections. Sections of other services stay unchanged.
func migratedServices() map[string]func(*sectionMigration) {
	return map[string]func(*sectionMigration){
		"prometheus": (*sectionMigration).prometheus, "alert-manager": (*sectionMigration).alertManager,
		"node-exporter": (*sectionMigration).nodeExporter, "grafana": (*sectionMigration).grafana, "watchdog": (*sectionMigration).watchdog,
		"rest-server": (*sectionMigration).restServer,
	}
}

// sectionMigration converts OpenPAI's section of a service to the section that paictl's chart reads.
type sectionMigration struct {
	m    *migrator
	name string
	out  map[string]any
}

// successor migrates the section of a service key by key. It drops other keys.
func (m *migrator) successor(name string, migrate func(*sectionMigration)) {
	d := m.docs[ServicesFile]
	if _, ok := d.get(name).(map[string]any); !ok {
		m.drop(d, "expected a map of settings", name)
		return
	}
	s := &sectionMigration{m: m, name: name, out: map[string]any{}}
	migrate(s)
	for _, key := range d.keys(name) {
		if !s.taken(key) {
			m.drop(d, "the service no longer has this setting; see its settings at the end of the new file", name, key)
		}
	}
	if len(s.out) > 0 {
		m.sections()[name] = s.out
	}
}

func (m *migrator) sections() map[string]any {
	if m.c.Services.Sections == nil {
		m.c.Services.Sections = map[string]any{}
	}
	return m.c.Services.Sections
}

// taken reports whether a key or a value inside it was migrated. If only a value inside it was migrated, taken reports the other values inside it
// one by one.
func (s *sectionMigration) taken(key string) bool {
	p := fieldPath{s.name, key}.String()
	return slices.ContainsFunc(slices.Collect(maps.Keys(s.m.docs[ServicesFile].taken)), func(t string) bool {
		return t == p || strings.HasPrefix(t, p+".")
	})
}

func (s *sectionMigration) path(key string) []any {
	p := []any{s.name}
	for step := range strings.SplitSeq(key, ".") {
		p = append(p, step)
	}
	return p
}

// move converts an old value with read, sets it under a new key, and adds a note. It drops the value if it can't be converted.
func (s *sectionMigration) move(old, to string, read func(text string) (any, bool)) {
	d, p := s.m.docs[ServicesFile], s.path(old)
	if d.get(p...) == nil {
		return
	}
	v, ok := read(strings.TrimSpace(d.doc.Scalar(p...)))
	if !ok {
		s.m.drop(d, "not a value that "+s.name+"."+to+" could have", p...)
		return
	}
	s.set(to, v)
	s.m.note(d, noteChanged, s.name+"."+to+" now", p...)
}

func (s *sectionMigration) set(to string, v any) {
	steps := strings.Split(to, ".")
	at := s.out
	for _, step := range steps[:len(steps)-1] {
		below, ok := at[step].(map[string]any)
		if !ok {
			below = map[string]any{}
			at[step] = below
		}
		at = below
	}
	at[steps[len(steps)-1]] = v
}

func (s *sectionMigration) drop(reason string, keys ...string) {
	for _, key := range keys {
		s.m.drop(s.m.docs[ServicesFile], reason, s.path(key)...)
	}
}

// port migrates the setting of a port. OpenPAI listened on this port of the machines. paictl uses the port only inside the cluster.
func (s *sectionMigration) port(old ...string) {
	for _, key := range old {
		s.move(key, "service.port", readPort)
	}
}

func (s *sectionMigration) prometheus() {
	s.port("prometheus-port", "port")
	s.move("scrape_interval", "scrape.interval", func(text string) (any, bool) {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 3600 {
			return nil, false
		}
		if n < 10 {
			s.set("scrape.timeout", fmt.Sprintf("%ds", n)) // never longer than the interval
		}
		return fmt.Sprintf("%ds", n), true
	})
	s.drop("metrics have new names: rewrite such rules, under customRules", "customized-alerts")
	s.drop("YARN no longer exists", "yarn_exporter_port")
}

func (s *sectionMigration) nodeExporter() { s.port("node-exporter-port", "port") }

func (s *sectionMigration) watchdog() { s.port("port") }

func (s *sectionMigration) restServer() {
	number := func(least int) func(string) (any, bool) {
		return func(text string) (any, bool) {
			n, err := strconv.Atoi(text)
			return n, err == nil && n >= least && n <= 1000000
		}
	}
	s.move("rate-limit-api-per-min", "limits.perMinute", number(10))
	s.move("rate-limit-submit-job-per-hour", "limits.submitPerHour", number(1))
	s.drop("there is no default password: paictl service start prints a link for the first administrator, who adds people", "default-pai-admin-username", "default-pai-admin-password")
	s.drop("the server makes its own keys", "jwt-secret")
	s.drop("people reach the server at port 443 of the masters, by HTTPS: see expose and service.hostPorts", "server-port")
	s.drop("see tokens.browserHours", "jwt-expire-time")
	s.drop("the scheduler gives tasks their ports", "schedule-port-start", "schedule-port-end")
}

func (s *sectionMigration) grafana() {
	s.port("grafana-port", "port")
	// Grafana queries Prometheus at the usual port, unless this setting contains another port.
	d := s.m.docs[ServicesFile]
	for _, key := range []string{"prometheus-port", "port"} {
		if port, ok := readPort(d.doc.Scalar("prometheus", key)); ok {
			s.set("prometheus.url", fmt.Sprintf("http://prometheus:%d", port))
		}
	}
}

func (s *sectionMigration) text(key string) string {
	return strings.TrimSpace(s.m.docs[ServicesFile].doc.Scalar(s.path(key)...))
}

func readText(text string) (any, bool) { return text, text != "" }

func readPort(text string) (any, bool) {
	n, err := strconv.Atoi(text)
	return n, err == nil && badPort(n) == ""
}

var oldDuration = regexp.MustCompile(`^([0-9]+(ms|s|m|h|d|w|y))+$`)

func readDuration(text string) (any, bool) { return text, oldDuration.MatchString(text) }

var mailServer = regexp.MustCompile(`^[A-Za-z0-9.-]+(:[0-9]+)?$`)

// readMailServer accepts host or host:port. The second result is false for any other text.
func readMailServer(text string) (any, bool) {
	_, port, found := strings.Cut(text, ":")
	_, ok := readPort(port)
	return text, mailServer.MatchString(text) && (ok || !found)
}

var mailAddress = regexp.MustCompile(`^[^\s@]+@[^\s@]+$`)

func readAddress(text string) (any, bool) { return text, mailAddress.MatchString(text) }

func readAddresses(text string) (any, bool) {
	var out []any
	for _, a := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ';' || r == ' ' }) {
		if _, ok := readAddress(a); !ok {
			return nil, false
		}
		if !slices.Contains(out, any(a)) {
			out = append(out, a)
		}
	}
	return out, len(out) > 0
}
