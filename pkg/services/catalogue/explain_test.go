package catalogue

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/config/strictyaml"
)

// The services configuration has 6 lines before the sections, so the first section begins on line 7.
func TestAMistakeInASectionHasItsPlaceAndRemedy(t *testing.T) {
	for name, c := range map[string]struct {
		sections string
		want     []string
	}{
		"an unknown key": {"metrics: {retentoin: 1d}\n", []string{
			`7:22: metrics.retentoin: there is no key "retentoin" here [services/values]`, `-> did you mean "retention"?`}},
		"the original's spelling": {"metrics: {log_level: info}\n", []string{
			`7:22: metrics.log_level: there is no key "log_level" here [services/values]`, `-> did you mean "logLevel"?`}},
		"an unknown key below": {"metrics: {image: {name: x}}\n", []string{
			`7:25: metrics.image.name: there is no key "name" here [services/values]`, "-> the keys here are digest, repository, tag"}},
		"an unknown key in a list": {"metrics:\n  receivers:\n  - {name: a, tokn: x}\n", []string{
			`9:21: metrics.receivers[0].tokn: there is no key "tokn" here [services/values]`, `-> did you mean "token"?`}},
		"text for a number": {"metrics: {replicas: \"2\"}\n", []string{
			`7:21: metrics.replicas: expected a whole number, found text [services/values]`, "-> remove the quotes, if there are any"}},
		"a fraction for a whole number": {"metrics: {replicas: 1.5}\n", []string{
			`7:21: metrics.replicas: expected a whole number, found a number [services/values]`, "-> write a whole number there"}},
		"a number for text": {"metrics: {retention: 15}\n", []string{
			`7:22: metrics.retention: expected text, found a number [services/values]`, "-> put the value in quotes"}},
		"text for a map": {"metrics: {image: x}\n", []string{
			`7:18: metrics.image: expected a map, found text [services/values]`, `-> write its keys on the lines below, indented, each as "key: value"`}},
		"text for a list": {"metrics: {receivers: x}\n", []string{
			`7:22: metrics.receivers: expected a list, found text [services/values]`, `-> write each entry on a separate line that begins with "- "`}},
		"too much": {"metrics: {service: {port: 70000}}\n", []string{
			`7:27: metrics.service.port: is more than 65535 [services/values]`, "-> the largest value is 65535"}},
		"too little": {"metrics: {retentionBytes: 1}\n", []string{
			`7:27: metrics.retentionBytes: is less than 1048576 [services/values]`, "-> the smallest value is 1048576"}},
		"none of the choices": {"metrics: {logLevel: loud}\n", []string{
			`7:21: metrics.logLevel: is not one of the allowed values [services/values]`, `-> write one of "debug", "info", "warn", "error"`}},
		"another form": {"metrics: {retention: 15 days}\n", []string{
			`7:22: metrics.retention: is not in the expected form [services/values]`, "-> How long data is kept: a number and one of h, d, w, y. Write for example 12h or 30d."}},
		"a missing key": {"metrics: {receivers: [{to: x}]}\n", []string{
			`7:23: metrics.receivers[0].name: is missing [services/values]`, "-> Name of the receiver."}},
		"an empty text": {"metrics: {receivers: [{name: \"\"}]}\n", []string{
			`7:30: metrics.receivers[0].name: is empty [services/values]`, "-> Name of the receiver."}},
		"none of two types": {"metrics: {receivers: [{name: a, to: 3}]}\n", []string{
			`7:37: metrics.receivers[0].to: expected a list or text, found a number [services/values]`, "-> write a list or text there"}},
		"an entry of the type that was near": {"metrics: {receivers: [{name: a, to: [3]}]}\n", []string{
			`7:38: metrics.receivers[0].to[0]: expected text, found a number [services/values]`, "-> put the value in quotes"}},
		"a short secret": {"metrics: {auth: {password: hunter2}}\n", []string{
			`7:28: metrics.auth.password: matches none of the allowed forms [services/values]`, "-> At least eight characters."}},
		"a secret of another form": {"metrics: {receivers: [{name: a, token: hunter 2}]}\n", []string{
			`7:40: metrics.receivers[0].token: is not in the expected form [services/values]`, "-> Token of the receiver, of letters, digits and dashes. It must match ^[A-Za-z0-9-]+$"}},
		"a secret whose name Kubernetes refuses": {"metrics: {auth: {keys: {a b: hunter2}}}\n", []string{
			`7:30: metrics.auth.keys["a b"]: auth.keys["a b"] can't be the name of a credential [services/credentials]`, "-> use A-Z, a-z, 0-9, -, _ and . in keys"}},
		"a Secret of one's own beside a secret": {"metrics: {credentialsSecret: mine, auth: {keys: {a: hunter2}}}\n", []string{
			`7:30: metrics.credentialsSecret: the section names your own Secret, but also contains auth.keys.a [services/credentials]`, "-> remove one of the two"}},
		"all at once, in the file's order": {"metrics:\n  replicas: 9\n  image: 1\nstorage: {locl: 1}\n", []string{
			`8:13: metrics.replicas: is more than 5 [services/values]`, "-> the largest value is 5",
			`9:10: metrics.image: expected a map, found a number [services/values]`, `-> write its keys on the lines below, indented, each as "key: value"`,
			`10:17: storage.locl: there is no key "locl" here [services/values]`, `-> did you mean "local"?`}},
		"a section that is no map": {"metrics: yes please\n", []string{
			`7:10: metrics: expected a map of settings [services/section]`, "-> write each setting on a separate line, indented, as key: value"}},
		"enabled in words": {"metrics: {enabled: 'true'}\n", []string{
			`7:20: metrics.enabled: expected true or false [services/section]`, "-> write enabled: true or enabled: false, without quotes"}},
		"a service that is misspelt": {"metric: {retention: 1d}\n", []string{
			`7:9: metric: there is no service "metric" [services/unknown-service]`, `-> did you mean "metrics"?`}},
		"a service that nobody knows": {"oracle: {}\n", []string{
			`7:9: oracle: there is no service "oracle" [services/unknown-service]`, "-> the services are ammeter, base, metrics, storage, cluster; your own service needs the key chart"}},
		"a service of the original": {"postgresql: {passwd: hunter2}\n", []string{
			`7:13: warning: postgresql: there is no service postgresql in this release; its section is kept, but not used [services/not-in-release]`}},
		"a role that doesn't exist": {"metrics: {placement: [mastr]}\n", []string{
			`7:22: metrics.placement: there is no role "mastr" [services/placement]`, "-> write all, or some of the roles: bare, master, store, worker"}},
		"a role that no machine has": {"metrics: {placement: store}\n", []string{
			`7:22: metrics.placement: no machine has the role store, so metrics could not run anywhere [services/placement]`,
			"-> give a machine of layout.yaml the role, or set placement of metrics to roles that machines have, or enabled: false"}},
		"a role without labels": {"metrics: {placement: bare}\n", []string{
			`7:22: metrics.placement: the role bare has no labels, so Kubernetes can't distinguish its machines from others [services/placement]`,
			"-> give the role labels in k8s-role-definition.yaml"}},
		"all beside a role": {"metrics: {placement: [all, master]}\n", []string{
			`7:22: metrics.placement: "all" can't be combined with other roles [services/placement]`, "-> write all, or some of the roles: bare, master, store, worker"}},
		"a place for what has no pods": {"base: {placement: all}\n", []string{
			`7:19: base.placement: base has no pods that could be placed [services/placement]`, "-> remove it"}},
		"no place for what has pods": {"metrics: {placement: none}\n", []string{
			`7:22: metrics.placement: metrics has pods, which must run somewhere [services/placement]`,
			"-> write all, or some of the roles: bare, master, store, worker; to run no pods, write enabled: false"}},
		"no role": {"metrics: {placement: []}\n", []string{
			`7:22: metrics.placement: it names no role [services/placement]`, "-> write all, or some of the roles: bare, master, store, worker"}},
		"roles that are no text": {"metrics: {placement: [1]}\n", []string{
			`7:23: metrics.placement[0]: expected text [services/section]`, "-> put the value in quotes"}},
		"roles that are no list": {"metrics: {placement: {a: b}}\n", []string{
			`7:22: metrics.placement: expected a list of names [services/section]`, "-> write placement: [a, b]"}},
		"nowhere to run, but disabled": {"metrics: {placement: store, enabled: false}\n", []string{}},
		"a disabled prerequisite": {"storage: {enabled: false}\n", []string{
			`7:20: warning: storage.enabled: metrics requires storage, which is disabled; it starts without it [services/requires]`,
			"-> enable storage, unless the cluster has a replacement for it"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, findings := load(t, c.sections)
			assert.Equal(t, c.want, lines(findings))
			assert.NotContains(t, findings.Error(), "hunter")
		})
	}
}

func TestFindingsAreThoseOfTheServicesFile(t *testing.T) {
	findings := Check(parse(t, "oracle: {}\n"))
	assert.Len(t, findings, 1)
	assert.Equal(t, "conf/"+config.ServicesFile, findings[0].File)
	assert.Equal(t, strictyaml.Error, findings[0].Severity)
}
