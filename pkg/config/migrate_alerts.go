package config

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

func (s *sectionMigration) alertManager() {
	s.port("alert_manager_port", "port")
	s.move("repeat-interval", "route.repeatInterval", readDuration)
	h := &sectionMigration{m: s.m, name: "alert-handler", out: map[string]any{}}
	var used *emailKeys
	for _, keys := range oldEmailKeys() {
		switch {
		case !slices.ContainsFunc(keys.all(), func(key string) bool { return s.text(key) != "" }):
		case used != nil:
			s.otherEmail(used, &keys)
		case s.email(keys):
			used = &keys
			s.noticesByMail(keys, h)
		}
	}
	s.policies(h)
	s.reports(h)
	if len(h.out) > 0 {
		s.m.join(h.name, h.out, s.name)
	}
	s.drop("the alert handler acts by its own account, and has other settings: see alert-handler", "alert-handler.port", "alert-handler.log-level", "alert-handler.pai-bearer-token", "pai-bearer-token",
		"actions-available", "alert-manager-url")
	s.drop("the service watchdog and its alerts monitor certificates", "cert-expiration-checker")
	s.drop("only the old alert handler needed it", "use-pylon")
}

type emailKeys struct{ host, port, from, to, user, password string }

func (k emailKeys) all() []string { return []string{k.host, k.port, k.from, k.to, k.user, k.password} }

func oldEmailKeys() []emailKeys {
	dashed := func(prefix string) emailKeys {
		return emailKeys{prefix + "smtp-host", prefix + "smtp-port", prefix + "smtp-from", prefix + "admin-receiver", prefix + "smtp-auth-username", prefix + "smtp-auth-password"}
	}
	return []emailKeys{
		dashed("alert-handler.email-configs."), dashed("email-configs."),
		{"smtp_url", "smtp_port", "smtp_from", "receiver", "smtp_auth_username", "smtp_auth_password"},
	}
}

// email migrates the mail settings together, because the chart rejects incomplete settings. Mail requires a server, a sender and a receiver. email
// reports whether the settings are complete.
func (s *sectionMigration) email(k emailKeys) bool {
	const to = "receivers.email."
	for _, needed := range []struct {
		key  string
		read func(string) (any, bool)
	}{{k.host, readMailServer}, {k.from, readAddress}, {k.to, readAddresses}} {
		if _, ok := needed.read(s.text(needed.key)); !ok {
			s.drop("e-mail requires a server, a sender and a receiver, and "+needed.key+" is missing or not valid: rewrite receivers.email", k.all()...)
			return false
		}
	}
	if _, port, found := strings.Cut(s.text(k.host), ":"); found {
		n, _ := readPort(port)
		s.set(to+"smtpPort", n)
	}
	s.move(k.host, to+"smtpHost", func(text string) (any, bool) {
		host, _, _ := strings.Cut(text, ":")
		return host, true
	})
	s.move(k.port, to+"smtpPort", readPort)
	s.move(k.from, to+"from", readAddress)
	s.move(k.to, to+"to", readAddresses)
	s.move(k.user, to+"authUsername", readText)
	s.move(k.password, to+"authPassword", readText)
	return true
}

// otherEmail drops mail settings without an effect, which have the keys of another release. It adds notes only for settings with another value.
func (s *sectionMigration) otherEmail(used, other *emailKeys) {
	for i, key := range other.all() {
		first := used.all()[i]
		if text := s.text(key); text != "" && text == s.text(first) {
			s.m.docs[ServicesFile].take(s.path(key)...)
			continue
		}
		s.drop("mails have one server, sender and list of receivers: "+s.name+"."+used.host+" and its neighbours are used", key)
	}
}

// noticesByMail copies complete mail settings to the alert handler. In OpenPAI, the alert handler used the same settings.
func (s *sectionMigration) noticesByMail(k emailKeys, h *sectionMigration) {
	const to = "notifications."
	host, port, found := strings.Cut(s.text(k.host), ":")
	if !found {
		port = s.text(k.port)
	}
	h.set(to+"smtp.host", host)
	tls := "starttls, which the server has to offer; otherwise set alert-handler.notifications.smtp.tls: none"
	if n, ok := readPort(port); ok {
		h.set(to+"smtp.port", n)
		if n == 465 {
			h.set(to+"smtp.tls", "implicit")
			tls = "TLS"
		}
	}
	h.set(to+"smtp.from", s.text(k.from))
	administrators, _ := readAddresses(s.text(k.to))
	h.set(to+"administrators", administrators)
	user, password := s.text(k.user), s.text(k.password)
	if user != "" && password != "" {
		h.set(to+"smtp.username", user)
		h.set(to+"smtp.password", password)
	}
	s.m.note(s.m.docs[ServicesFile], noteChanged, "also alert-handler.notifications now, for notices to people and administrators; they are sent with "+tls, s.path(k.host)...)
}

// oldAction describes the migration of an action in OpenPAI's receivers. It holds the step of a policy, or the reason why no such step exists.
type oldAction struct{ step, reason string }

func oldActions() map[string]oldAction {
	return map[string]oldAction{
		"stop-jobs":               {step: "stop-job"},
		"cordon-nodes":            {step: "cordon"},
		"email-admin":             {reason: "Alertmanager mails every alert to alert-manager.receivers.email.to, without a template"},
		"email-user":              {reason: "the alert handler mails owners before and when it stops their jobs; other alerts about a job are on its page"},
		"tag-jobs":                {reason: "the alert handler doesn't tag jobs: the reason why a job was stopped is on its page"},
		"fix-nvidia-gpu-low-perf": {reason: "the alert handler doesn't change the clocks of GPUs; a policy can reset a GPU: {do: reset-gpu}"},
	}
}

// policies converts routes whose receivers stop jobs or cordon machines to policies of the alert handler. At first, the new policies only do dry
// runs.
func (s *sectionMigration) policies(h *sectionMigration) {
	d := s.m.docs[ServicesFile]
	receivers := map[string]int{}
	for i := range d.list(s.path("customized-receivers")...) {
		name := d.text(append(s.path("customized-receivers"), i, "name")...)
		receivers[name] = i
	}
	used := map[string]bool{}
	var policies []any
	names := s.m.policyNames(h.name)
	var earlier []oldRoute
	for i := range d.list(s.path("customized-routes.routes")...) {
		at := append(s.path("customized-routes.routes"), i)
		route := s.m.route(at)
		before := route.first(earlier)
		earlier = append(earlier, route)
		name := d.doc.Scalar(append(at, "receiver")...)
		receiver, known := receivers[name]
		if !known {
			s.m.note(d, noteDropped, fmt.Sprintf("customized-receivers has no receiver %q", name), at...)
			continue
		}
		used[name] = true
		steps := s.stepsOf(append(s.path("customized-receivers"), receiver, "actions"))
		if len(steps) == 0 {
			s.m.note(d, noteDropped, fmt.Sprintf("its receiver %s has no action that the alert handler can take; alert-manager sends these alerts to its receivers, as all alerts", name), at...)
			continue
		}
		alerts, problem := route.alerts()
		if problem != "" {
			s.m.note(d, noteDropped, problem, at...)
			continue
		}
		route.take(d)
		for _, step := range steps {
			title := uniqueName(name, names)
			policies = append(policies, map[string]any{"name": title, "alerts": alerts, "dryRun": true, "steps": []any{map[string]any{"do": step}}})
			s.m.note(d, noteChanged, fmt.Sprintf("the policy %s of alert-handler.policies now (%s). It is a dry run until you set dryRun: false, and acts without a notice before unless you set grace. Policies of this file replace the default ones%s", title, step, before),
				append(at, "receiver")...)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(receivers)) {
		if !used[name] {
			s.m.drop(d, fmt.Sprintf("no route leads to the receiver %q", name), append(s.path("customized-receivers"), receivers[name])...)
		}
	}
	if len(policies) > 0 {
		h.set("policies", policies)
	}
}

// stepsOf returns the steps for the actions of a receiver. It adds notes about actions without a step. Actions may be a map, or a list of names.
func (s *sectionMigration) stepsOf(actions []any) (steps []string) {
	d := s.m.docs[ServicesFile]
	take := func(name string, at []any) {
		a, known := oldActions()[name]
		switch {
		case known && a.step != "":
			d.take(at...)
			if !slices.Contains(steps, a.step) {
				steps = append(steps, a.step)
			}
		case known && !d.taken[fieldPath(at).String()]:
			s.m.note(d, noteDropped, a.reason, at...)
		case !known && !d.taken[fieldPath(at).String()]:
			s.m.note(d, noteDropped, "the alert handler doesn't have this action", at...)
		}
	}
	for _, name := range d.keys(actions...) {
		take(name, append(slices.Clone(actions), name))
	}
	for i := range d.list(actions...) {
		at := append(slices.Clone(actions), i)
		take(d.doc.Scalar(at...), at)
	}
	return steps
}

var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// uniqueName converts the name of a receiver to a valid policy name that isn't in names.
func uniqueName(text string, names map[string]bool) string {
	const most = 36
	base := strings.Trim(notInNames.ReplaceAllString(strings.ToLower(text), "-"), "-")
	if len(base) > most {
		base = strings.TrimRight(base[:most], "-")
	}
	if base == "" {
		base = "migrated"
	}
	name := base
	for n := 2; names[name]; n++ {
		name = fmt.Sprintf("%s-%d", base, n)
	}
	names[name] = true
	return name
}

// reports migrates the settings of OpenPAI's programs that sent mails about utilization and jobs.
func (s *sectionMigration) reports(h *sectionMigration) {
	d := s.m.docs[ServicesFile]
	if p := s.path("cluster-utilization"); d.get(p...) != nil {
		schedule := append(slices.Clone(p), "schedule")
		switch notifications, _ := h.out["notifications"].(map[string]any); {
		case d.doc.Scalar(schedule...) == "":
			s.m.drop(d, "it had no schedule, so it sent nothing", p...)
		case notifications == nil:
			s.m.drop(d, "without a mail server no report is sent: see alert-handler.notifications", p...)
		default:
			h.set("notifications.weeklyReport", true)
			s.m.note(d, noteChanged, "alert-handler.notifications.weeklyReport now: on Mondays; paictl report shows it at any time", p...)
		}
	}
	if p := s.path("job-status-change-notification"); d.get(p...) != nil {
		s.m.note(d, noteChanged, "the service alert-handler does that without a setting, if it has a mail server: for jobs whose files select notices, and for people who choose them (paictl notify)", p...)
	}
}
