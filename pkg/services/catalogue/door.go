package catalogue

// linked are services whose pages people open through the server, with the value that has the address for links.
var linked = map[string]string{"prometheus": "externalUrl", "alert-manager": "externalUrl", "grafana": "rootUrl"}

// configureLinks passes their public address to services whose pages the server proxies, unless their sections set one.
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
