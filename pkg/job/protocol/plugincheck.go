package protocol

import (
	"fmt"
	"slices"
	"strconv"
)

// checkParameters checks the parameters of a plugin, so that mistakes are found before a task runs. It ignores unknown keys, because each plugin
// defines its keys.
func (p place) checkParameters(plugin string) {
	if !p.there() || p.v.kind != kindMap {
		return
	}
	switch plugin {
	case "cmd":
		p.checkCmd()
	case "ssh":
		p.checkSSH()
	case "git":
		p.get("options").texts(0)
		p.get("clone_dir").text()
		if uri := p.get("repo_uri"); uri.there() {
			uri.text()
		} else {
			p.require("repo_uri")
		}
	case "tensorboard":
		p.get("port").numeric(1, 65535)
		if dirs := p.get("logdir"); dirs.is(kindMap) {
			for _, d := range dirs.each() {
				d.text()
			}
		}
	}
}

func (p place) checkCmd() {
	before, after, callbacks := p.get("preCommands"), p.get("postCommands"), p.get("callbacks")
	before.texts(0)
	after.texts(0)
	if callbacks.there() && (before.there() || after.there()) {
		callbacks.report("job/plugin", "the plugin cmd has both callbacks and preCommands or postCommands", "keep one of the two")
	}
	for _, c := range callbacks.list(0) {
		if !c.object(nil, "event", "commands") {
			continue
		}
		events := []string{"taskStarts", "taskSucceeds"}
		if e := c.get("event"); e.is(kindText) && !slices.Contains(events, e.v.text()) {
			e.report("job/plugin", "there is no event "+shorten(e.v.text()), oneOf(e.v.text(), "the events are ", events))
		}
		c.get("commands").texts(0)
	}
}

func (p place) checkSSH() {
	p.get("jobssh").truthy()
	p.get("sshbarrier").truthy()
	p.get("sshbarrierTimeout").numeric(1, 30*24*60)
	if user := p.get("userssh"); user.is(kindMap) {
		user.get("type").text()
		user.get("value").text()
	}
}

// numeric checks that the value is a number, or a text that contains a number, between least and most.
func (p place) numeric(least, most float64) {
	if !p.there() || p.v.kind == kindText && hasTag(p.v.text()) {
		return
	}
	n, err := p.v.number, error(nil)
	if p.v.kind == kindText {
		n, err = strconv.ParseFloat(p.v.text(), 64)
	}
	if p.v.kind != kindText && !p.is(kindNumber) {
		return
	}
	if err != nil || n < least || n > most {
		p.report("job/range", "this number is not possible here", fmt.Sprintf("write a number from %g to %g", least, most))
	}
}
