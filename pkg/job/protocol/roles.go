package protocol

import (
	"fmt"
	"slices"
	"strings"

	"github.com/openpai/paictl/pkg/secret"
)

const (
	most     = 1_000_000_000 // of memory in MB and the like: more is a typing error
	portsMax = 1_000         // of one label
)

func (r *reader) readRoles(roles place) {
	if len(r.job.Roles) != len(roles.v.fields) {
		return
	}
	tasks := 0
	for i, p := range roles.each() {
		role := &r.job.Roles[i]
		p.role(role)
		tasks += role.Instances
	}
	if tasks > MaxTasks {
		roles.report("job/range", fmt.Sprintf("the job has %d tasks", tasks), fmt.Sprintf("the limit of one job is %d; split it into several jobs", MaxTasks))
	}
}

func (p place) role(role *Role) {
	role.Instances, role.MinFailed, role.MinSucceeded = 1, 1, 1
	required := []string{"dockerImage", "resourcePerInstance", "commands"}
	if p.v.field("exec") != nil {
		required = required[:2]
	}
	if !p.object([]string{"protocolVersion", "instances", "completion", "taskRetryCount", "prerequisites", "dockerImage", "data", "output", "script",
		"extraContainerOptions", "resourcePerInstance", "commands", "exec", "shell"}, required...) {
		return
	}
	p.get("protocolVersion").protocolVersion()
	role.Instances = p.get("instances").number(1, MaxTasks, 1)
	p.completion(role)
	role.RetryCount = p.get("taskRetryCount").number(-2, most, 0)
	p.resources(role)
	if o := p.get("extraContainerOptions"); o.object([]string{"shmMB", "diskMB", "infiniband"}) {
		role.ShmMB = o.get("shmMB").number(0, most, 0)
		role.DiskMB = o.get("diskMB").number(0, most, 0)
		role.Infiniband = o.get("infiniband").truthy()
	}
	s := scope{role: role.Name, roots: map[string]*value{
		"$parameters": p.r.tree.root.field("parameters"), "$secrets": p.r.tree.root.field("secrets"),
		"$script": p.prerequisite("script", typeScript), "$output": p.prerequisite("output", typeOutput), "$data": p.prerequisite("data", typeData),
	}}
	if image := p.prerequisite("dockerImage", typeImage); image != nil {
		role.Image = p.get("dockerImage").v.text()
	}
	p.commands(role, s)
	p.plugins(role, s)
}

func (p place) completion(role *Role) {
	role.MinSucceeded = role.Instances
	c := p.get("completion")
	if !c.object([]string{"minFailedInstances", "minSucceededInstances"}) {
		return
	}
	// As in OpenPAI, a missing value and 0 mean the default.
	threshold := func(name string, fallback int) int {
		at := c.get(name)
		if !at.there() || at.v.kind == kindNull {
			return fallback
		}
		if n := at.number(-1, most, fallback); n != 0 {
			return n
		}
		return fallback
	}
	role.MinFailed = threshold("minFailedInstances", 1)
	role.MinSucceeded = threshold("minSucceededInstances", role.Instances)
}

func (p place) resources(role *Role) {
	res := p.get("resourcePerInstance")
	role.Ports = []Port{{"http", 1}, {"ssh", 1}}
	if !res.object([]string{"cpu", "memoryMB", "gpu", "ports"}, "cpu", "memoryMB", "gpu") {
		return
	}
	role.MilliCPU = res.get("cpu").thousandths(most)
	role.MemoryMB = res.get("memoryMB").number(0, most, 0)
	role.GPU = res.get("gpu").number(0, MaxTasks, 0)
	ports := res.get("ports")
	if !ports.there() || ports.v.kind == kindNull || !ports.is(kindMap) {
		return
	}
	if len(ports.v.fields) == 0 {
		ports.report("job/empty", "the map is empty", "write a label and a number, or remove the key")
	}
	for _, f := range ports.each() {
		if !roleNames.MatchString(f.name()) || len(f.name()) > nameLimit {
			f.report("job/name", "the label of a port is not allowed", "write "+roleName)
			continue
		}
		port := Port{Label: f.name(), Count: f.number(0, portsMax, 1)}
		if i := slices.IndexFunc(role.Ports, func(x Port) bool { return x.Label == port.Label }); i >= 0 {
			role.Ports[i] = port
		} else {
			role.Ports = append(role.Ports, port)
		}
	}
	slices.SortFunc(role.Ports, func(a, b Port) int { return strings.Compare(a.Label, b.Label) })
}

// truthy returns the value of a field that may be true, false, 1, 0, "true" or "false". A missing field is false.
func (p place) truthy() bool {
	if p.there() && p.v.kind == kindNumber && (p.v.number == 0 || p.v.number == 1) {
		return p.v.number == 1
	}
	if p.there() && p.v.kind == kindText && (p.v.text() == "true" || p.v.text() == "false") {
		return p.v.text() == "true"
	}
	return p.boolean(false)
}

// prerequisite returns the prerequisite that a field of the role names. It returns nil and reports a finding if there is no such prerequisite.
func (p place) prerequisite(name, kind string) *value {
	f := p.get(name)
	if !f.is(kindText) || f.refers() {
		return nil
	}
	found := p.r.prerequisites[kind][f.v.text()]
	if found == nil {
		var names []string
		for n := range p.r.prerequisites[kind] {
			names = append(names, n)
		}
		remedy := "write it into prerequisites, with type: " + kind
		if len(names) > 0 {
			remedy = oneOf(f.v.text(), "those of the type "+kind+" are ", names)
		}
		f.report("job/unknown-prerequisite", fmt.Sprintf("there is no prerequisite %s of the type %s", shorten(f.v.text()), kind), remedy)
	}
	return found
}

// commands sets the commands of a role. It joins them with the commands of the deployment, and fills in the references.
func (p place) commands(role *Role, s scope) {
	own := p.get("commands")
	if exec := p.get("exec"); exec.there() {
		_, places := exec.texts(1)
		for _, e := range places {
			role.Exec = append(role.Exec, secret.String(e.fill(s)))
		}
		if own.there() {
			exec.report("job/two-commands", "the role has both commands and exec", "keep one of the two: exec runs one program without a shell")
		}
		if p.get("shell").there() {
			exec.report("job/two-commands", "the role has both shell and exec", "keep one of the two")
		}
		if len(role.Exec) > 0 && role.Exec[0] == "" {
			exec.report("job/empty", "the program has no name", "write its path, or its name if it is in PATH")
		}
		return
	}
	shell, parts := p.get("shell").texts(1)
	for _, part := range parts {
		part.refers()
	}
	role.Shell = shell
	_, places := own.texts(1)
	if d, ok := p.r.deployments[p.r.job.Deployment]; ok && p.r.job.Deployment != "" {
		before, after := d.roleCommands(role.Name)
		places = append(append(before, places...), after...)
	}
	lines := make([]string, 0, len(places))
	for _, c := range places {
		lines = append(lines, c.fillIn(strings.TrimSpace(c.v.text()), s))
	}
	role.Command = secret.String(strings.TrimSpace(strings.Join(lines, "\n")))
	blank := !slices.ContainsFunc(places, func(c place) bool { return strings.TrimSpace(c.v.text()) != "" })
	if blank && len(places) > 0 && own.there() && own.v.kind == kindList {
		own.warn("job/empty", "the commands do nothing", "")
	}
}

// roleCommands returns the commands that a deployment adds before and after the commands of a role.
func (p place) roleCommands(role string) (before, after []place) {
	roles := p.v.field("taskRoles")
	if roles == nil || roles.kind != kindMap || roles.field(role) == nil || roles.field(role).kind != kindMap {
		return nil, nil
	}
	at := p.get("taskRoles").get(role)
	for _, name := range []string{"preCommands", "postCommands"} {
		f := at.get(name)
		if !f.there() || f.v.kind != kindList {
			continue
		}
		var places []place
		for i, item := range f.v.items {
			if item.kind == kindText { // other names are reported when deployments are read
				places = append(places, place{p.r, item, f.path.With(i)})
			}
		}
		if name == "preCommands" {
			before = places
		} else {
			after = places
		}
	}
	return before, after
}
