{{- define "textgate.labels" -}}
app.kubernetes.io/name: textgate
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
