package protocol

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/hint"
)

const (
	nameLimit = 255
	jobName   = "letters, digits, - and _, 255 at most"
	roleName  = "letters, digits and _, not beginning with a digit"
)

var (
	jobNames  = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)
	roleNames = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)
)

// SplitName splits NAME, USER/NAME or USER~NAME into its parts. owner is "" if the name contains no user. Names that only jobs of other programs
// can have are also valid.
func SplitName(name string) (owner, short string, err error) {
	short = name
	if at := strings.IndexAny(name, "~/"); at > 0 {
		owner, short = name[:at], name[at+1:]
	}
	switch {
	case short == "":
		return "", "", hint.Errorf("write NAME or USER/NAME", "a job's name is missing")
	case strings.Contains(short, "/"):
		return "", "", hint.Errorf("write NAME or USER/NAME", "%q is not the name of a job", shorten(name))
	}
	return owner, short, nil
}

// CheckName returns an error unless a name can be the NAME or USER/NAME of a job that paictl submitted.
func CheckName(name string) error {
	_, short, err := SplitName(name)
	if err == nil && (len(short) > nameLimit || !jobNames.MatchString(short)) {
		return hint.Errorf("write NAME or USER/NAME; a name has "+jobName, "%q is not the name of a job", shorten(name))
	}
	return err
}

// reader parses one file and collects its mistakes.
type reader struct {
	file     string
	tree     *tree
	job      *Job
	findings strictyaml.Findings
	filled   int  // bytes of commands and plugins so far
	masked   bool // the file is the output of Masked

	prerequisites map[string]map[string]*value // by type and name
	deployments   map[string]place
}

// Parse parses a job file. The job is nil if the file has errors. If the file only has warnings, they are returned together with the job.
func Parse(file string, data []byte) (*Job, strictyaml.Findings) {
	return parse(file, data, false)
}

func parse(file string, data []byte, masked bool) (*Job, strictyaml.Findings) {
	t, findings := readTree(file, data)
	if len(findings) > 0 {
		return nil, findings
	}
	r := &reader{file: file, tree: t, masked: masked, job: &Job{File: file, tree: t},
		prerequisites: map[string]map[string]*value{}, deployments: map[string]place{}}
	r.read()
	r.findings.Sort()
	if len(r.findings.Errors()) > 0 {
		return nil, r.findings
	}
	return r.job, r.findings
}

// String returns the word "job" and the job's name. It doesn't include commands, which contain secrets.
func (j *Job) String() string { return "job " + j.Name }

// GoString returns the same as String.
func (j *Job) GoString() string { return j.String() }

func (r *reader) add(s strictyaml.Severity, line, column int, path strictyaml.Path, rule, message, remedy string) {
	if len(r.findings) < maxFindings {
		r.findings = append(r.findings, strictyaml.Finding{File: r.file, Line: line, Column: column, Field: path.String(),
			Rule: rule, Severity: s, Message: message, Remedy: remedy})
	}
}

func (r *reader) read() {
	top := place{r: r, v: r.tree.root}
	if !top.object([]string{"protocolVersion", "name", "type", "version", "contributor", "description", "prerequisites", "parameters",
		"secrets", "jobRetryCount", "taskRoles", "deployments", "defaults", "extras"}, "protocolVersion", "name", "type", "taskRoles") {
		return
	}
	j := r.job
	top.get("protocolVersion").protocolVersion()
	j.Name = top.get("name").named(jobNames, nameLimit, jobName)
	if t := top.get("type"); t.text() != "job" && t.there() && t.v.kind == kindText && !t.refers() {
		t.report("job/type", "the type of a job file is job", "write type: job")
	}
	j.Version = top.get("version").version()
	j.Contributor, j.Description = top.get("contributor").text(), top.get("description").text()
	top.get("parameters").is(kindMap)
	if s := top.get("secrets"); s.is(kindMap) {
		s.unmasked("write the value")
	}
	for _, key := range withAddresses() {
		top.get(key).unmasked("write the value, or a reference to a secret")
	}
	j.RetryCount = top.get("jobRetryCount").number(0, 1_000_000, 0)
	r.readPrerequisites(top.get("prerequisites"))
	r.readDeployments(top.get("deployments"))
	r.readDefaults(top.get("defaults"))
	roles := top.get("taskRoles")
	if roles.is(kindMap) {
		r.checkRoleNames(roles)
		r.readExtras(top.get("extras"))
		r.readRoles(roles)
	}
	r.readLogins()
}

func (p place) protocolVersion() {
	if !p.there() || p.v.kind == kindNumber && p.v.number == 2 || p.v.kind == kindText && p.v.text() == "2" {
		return
	}
	p.report("job/protocol-version", "only version 2 of the protocol is supported", "write protocolVersion: 2")
}

func (p place) version() string {
	if !p.there() {
		return ""
	}
	if p.v.kind == kindNumber {
		return formatNumber(p.v.number)
	}
	return p.text()
}

// unmasked reports each value that equals Masked. Such a value comes from a copy of a job file that was stored without its secrets.
func (p place) unmasked(remedy string) {
	if !p.there() || p.r.masked {
		return
	}
	if p.v.kind == kindText && p.v.text() == Masked {
		p.report("job/masked", "the file is a copy from which the secrets were removed", remedy)
	}
	for _, f := range p.each() {
		f.unmasked(remedy)
	}
	for i, item := range p.v.items {
		place{p.r, item, p.path.With(i)}.unmasked(remedy)
	}
}

func (r *reader) readDefaults(p place) {
	r.job.VirtualCluster = "default"
	if !p.is(kindMap) {
		return
	}
	if vc := p.get("virtualCluster"); vc.is(kindText) && !vc.refers() {
		r.job.NamesVirtualCluster = true
		if r.job.VirtualCluster = vc.text(); r.job.VirtualCluster == "" {
			vc.report("job/name", "the name is empty", "write the name of a virtual cluster, or remove the key")
		}
	}
	d := p.get("deployment")
	if r.job.Deployment = d.literal(); r.job.Deployment == "" {
		return
	}
	if _, ok := r.deployments[r.job.Deployment]; !ok {
		names := make([]string, 0, len(r.deployments))
		for name := range r.deployments {
			names = append(names, name)
		}
		d.report("job/unknown-deployment", "there is no deployment "+shorten(r.job.Deployment), oneOf(r.job.Deployment, "deployments has ", names))
	}
}

func (r *reader) readDeployments(p place) {
	for _, d := range p.list(1) {
		// As in OpenPAI, other keys are allowed.
		if !d.object(nil, "name", "taskRoles") {
			continue
		}
		d.get("protocolVersion").protocolVersion()
		name := d.get("name").named(jobNames, nameLimit, jobName)
		if _, twice := r.deployments[name]; twice {
			d.get("name").report("job/duplicate", "there are two deployments "+shorten(name), "give one of them another name")
		}
		r.deployments[name] = d
		roles := d.get("taskRoles")
		if !roles.is(kindMap) {
			continue
		}
		if len(roles.v.fields) == 0 {
			roles.report("job/empty", "the map is empty", "write at least one role with preCommands or postCommands")
		}
		for _, role := range roles.each() {
			role.roleName()
			if role.object([]string{"preCommands", "postCommands", "protocolVersion"}) {
				role.get("protocolVersion").protocolVersion()
				role.get("preCommands").texts(1)
				role.get("postCommands").texts(1)
			}
		}
	}
}

func (p place) roleName() {
	line, column := p.atKey()
	switch name := p.name(); {
	case hasTag(name):
		p.r.add(strictyaml.Error, line, column, p.path, "job/reference", "references can't be used here", "write the name itself; references are replaced in commands and in parameters of plugins")
	case !roleNames.MatchString(name) || len(name) > nameLimit:
		p.r.add(strictyaml.Error, line, column, p.path, "job/name", "the name of a role is not allowed", "write "+roleName)
	}
}

// checkRoleNames checks the names of the roles and adds the roles to the job. All later steps depend on valid names.
func (r *reader) checkRoleNames(roles place) {
	if len(roles.v.fields) == 0 {
		roles.report("job/empty", "the job has no role", requiredRemedy("taskRoles"))
	}
	if n := len(roles.v.fields); n > MaxRoles {
		roles.report("job/range", fmt.Sprintf("the job has %d roles", n), fmt.Sprintf("write %d at most", MaxRoles))
		return
	}
	for _, role := range roles.each() {
		role.roleName()
	}
	for i, object := range objectNames(roles.v.names()) {
		r.job.Roles = append(r.job.Roles, Role{Name: roles.v.fields[i].name, Object: object})
	}
}

func (r *reader) hasRole(name string) bool {
	return slices.ContainsFunc(r.job.Roles, func(role Role) bool { return role.Name == name })
}

func (r *reader) roleNames() []string {
	var out []string
	for _, role := range r.job.Roles {
		out = append(out, role.Name)
	}
	return out
}
