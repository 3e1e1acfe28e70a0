package ssh

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kevinburke/ssh_config"

	"github.com/openpai/paictl/pkg/hint"
)

// clientConfig is a configuration file of OpenSSH's client and its included files.
type clientConfig struct {
	file     string
	hosts    []*ssh_config.Host
	includes map[int][]*clientConfig // by line
}

type setting struct {
	value string
	file  string
	line  int
}

// maxIncludes is the maximum depth of nested Include lines, as in OpenSSH. The limit stops files that include each other. The parser's own limit is
// lower.
const maxIncludes = 16

// including replaces the keyword Include before the text is parsed. The parsing library doesn't report positions in included files, and doesn't
// support Match there.
const including = "PaictlInclude"

// configReader reads a configuration, and warns about lines that paictl ignores.
type configReader struct {
	home string
	warn func(string)
}

func (r configReader) read(file string, depth int) (*clientConfig, error) {
	if depth > maxIncludes {
		return nil, hint.Errorf("look for a file that includes itself", "%s: more than %d levels of Include", file, maxIncludes)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	c := &clientConfig{file: file, includes: map[int][]*clientConfig{}}
	lines := bytes.Split(bytes.TrimPrefix(text, []byte("\ufeff")), []byte("\n"))
	matching := false // in a Match block that has no effect
	for i, line := range lines {
		key, value := keyword(string(line))
		switch {
		case key == "host":
			matching, lines[i] = false, bytes.ReplaceAll(line, []byte(`"`), nil)
		case key == "match" && strings.EqualFold(value, "all"):
			matching, lines[i] = false, []byte("Host *")
		case key == "match":
			matching, lines[i] = true, nil
			r.warn(fmt.Sprintf("%s:%d: paictl ignores this Match block; write Host, or Match all", file, i+1))
		case matching:
			lines[i] = nil
		case key == "":
		case value == "":
			return nil, hint.Errorf("write the value, or remove the line", "%s:%d: %s has no value", file, i+1, key)
		case key == "include":
			if c.includes[i+1], err = r.include(value, depth); err != nil {
				return nil, err
			}
			lines[i] = []byte(including + " " + value)
		case !slices.Contains(keywords, key):
			r.warn(fmt.Sprintf("%s:%d: OpenSSH has no keyword %s", file, i+1, key))
		}
	}
	parsed, err := ssh_config.DecodeBytes(bytes.Join(lines, []byte("\n")))
	if err != nil {
		return nil, hint.Errorf("correct the file, or leave it out with an empty one", "%s: %w", file, err)
	}
	c.hosts = parsed.Hosts
	return c, nil
}

// include reads the files of an Include line. As in OpenSSH, a pattern without matching files is not an error.
func (r configReader) include(patterns string, depth int) ([]*clientConfig, error) {
	var out []*clientConfig
	for pattern := range strings.FieldsSeq(patterns) {
		pattern = strings.Trim(pattern, `"`)
		if strings.HasPrefix(pattern, "~/") {
			pattern = filepath.Join(r.home, pattern[1:])
		} else if !filepath.IsAbs(pattern) {
			pattern = filepath.Join(r.home, ".ssh", pattern)
		}
		files, err := filepath.Glob(pattern)
		if err != nil {
			return nil, hint.Errorf("correct the Include line", "%s is not a pattern of file names", pattern)
		}
		for _, file := range files {
			c, err := r.read(file, depth+1)
			if err != nil {
				return nil, err
			}
			out = append(out, c)
		}
	}
	return out, nil
}

// keyword returns the first word of a line in lower case, and the rest of the line. The results are empty for comments and empty lines.
func keyword(line string) (key, value string) {
	line = strings.TrimSpace(line)
	if strings.HasPrefix(line, "#") {
		return "", ""
	}
	end := strings.IndexAny(line, " \t=")
	if end < 0 {
		return strings.ToLower(line), ""
	}
	value = strings.TrimLeft(line[end:], " \t")
	return strings.ToLower(line[:end]), strings.TrimSpace(strings.TrimPrefix(value, "="))
}

// all returns the values of a keyword that apply to a host, in the order of the files.
func (c *clientConfig) all(host, key string) []setting {
	if c == nil {
		return nil
	}
	var out []setting
	for _, h := range c.hosts {
		if !h.Matches(host) {
			continue
		}
		for _, n := range h.Nodes {
			kv, ok := n.(*ssh_config.KV)
			switch {
			case !ok:
			case kv.Key == including:
				for _, included := range c.includes[kv.Pos().Line] {
					out = append(out, included.all(host, key)...)
				}
			case strings.EqualFold(kv.Key, key):
				out = append(out, setting{strings.Trim(kv.Value, `"`), c.file, kv.Pos().Line})
			}
		}
	}
	return out
}

// first returns the first value of a keyword that applies to a host, or an empty setting. OpenSSH uses only the first value of most keywords.
func (c *clientConfig) first(host, key string) setting {
	if all := c.all(host, key); len(all) > 0 {
		return all[0]
	}
	return setting{}
}

// keywords lists the keywords of ssh_config(5) in OpenSSH 10, and keywords of distributions.
var keywords = strings.Fields(`
addkeystoagent addressfamily batchmode bindaddress bindinterface canonicaldomains canonicalizefallbacklocal canonicalizehostname
canonicalizemaxdots canonicalizepermittedcnames casignaturealgorithms certificatefile challengeresponseauthentication channeltimeout checkhostip
cipher ciphers clearallforwardings compression compressionlevel connectionattempts connecttimeout controlmaster controlpath controlpersist dsaauthentication
dynamicforward enableescapecommandline enablesshkeysign escapechar exitonforwardfailure fingerprinthash forkafterauthentication forwardagent
forwardx11 forwardx11timeout forwardx11trusted gatewayports globalknownhostsfile gssapiauthentication gssapiclientidentity gssapidelegatecredentials
gssapikexalgorithms gssapikeyexchange gssapirenewalforcesrekey gssapiserveridentity gssapitrustdns hashknownhosts hostbasedacceptedalgorithms
hostbasedauthentication hostbasedkeytypes hostkeyalgorithms hostkeyalias hostname identitiesonly identityagent identityfile ignoreunknown ipqos
kbdinteractiveauthentication kbdinteractivedevices kexalgorithms knownhostscommand localcommand localforward loglevel logverbose macs
nohostauthenticationforlocalhost numberofpasswordprompts obscurekeystroketiming passwordauthentication permitlocalcommand permitremoteopen
pkcs11provider port preferredauthentications protocol proxycommand proxyjump proxyusefdpass pubkeyacceptedalgorithms pubkeyacceptedkeytypes
pubkeyauthentication refuseconnection rekeylimit remotecommand remoteforward requesttty requiredrsasize revokedhostkeys rhostsrsaauthentication rsaauthentication
rsaminsize securitykeyprovider sendenv serveralivecountmax serveraliveinterval sessiontype setenv smartcarddevice stdinnull streamlocalbindmask
streamlocalbindunlink stricthostkeychecking syslogfacility tag tcpkeepalive tunnel tunneldevice updatehostkeys useblacklistedkeys usekeychain
useprivilegedport user userknownhostsfile useroaming verifyhostkeydns versionaddendum visualhostkey warnweakcrypto xauthlocation`)
