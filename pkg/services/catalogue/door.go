package catalogue

// linked are services whose pages people reach through the server, and the value that has the address for links in them.
var linked = map[string]string{"prometheus": "externalUrl", "alert-manager": "externalUrl", "grafana": "rootUrl"}

// configureLinks gives services whose pages the server proxies their public address, unless their sections set one.
func (b *builder) configureLinks() {
	server := b.services[ServerService]
	if server == nil || server.Upstream != nil || !server.Enabled || server.Chart == nil {
		return
	}
	public := ProxyURL(server)
	if public == "" {
		return
	}
	behind, _ := merge(server.Chart.Values, server.Values)["door"].(map[string]any)
	for name, key := range linked {
		s := b.services[name]
		door, _ := behind[name].(map[string]any)
		if at, _ := door["url"].(string); at == "" || s == nil || s.Upstream != nil {
			continue
		}
		s.Values = mergeComputed(map[string]any{key: public + "/" + name + "/"}, s.Values)
	}
}
