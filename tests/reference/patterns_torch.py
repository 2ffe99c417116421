"""The functions behind h200_patterns.json and own_patterns. build(name, dims) -> (function, meta-tensor inputs)."""
# ruff: noqa
import torch, torch.nn.functional as F
bf = torch.bfloat16
def bias_relu(x, b): return torch.relu(x + b)
def rms(x, w):
    v = x*x; m = v.mean(-1, keepdim=True); e = m + 1e-6; r = torch.rsqrt(e); y = x*r; return y*w
def rms32(x, w):
    h = x.float(); r = torch.rsqrt(h.pow(2).mean(-1, keepdim=True)+1e-6); return (h*r).to(x.dtype)*w
def add_rms(x, res, w):
    h = x + res; return rms(h, w), h
def lnorm(x, w, b): return F.layer_norm(x, (x.shape[-1],), w, b)
def lnorm_ops(x, w, b):
    m = x.mean(-1, keepdim=True); d = x-m; v = (d*d).mean(-1, keepdim=True); return d*torch.rsqrt(v+1e-5)*w+b
def softmax_ops(x):
    m = x.amax(-1, keepdim=True); e = torch.exp(x-m); return e/e.sum(-1, keepdim=True)
def softmax(x): return F.softmax(x, -1)
def swiglu(a, b): return F.silu(a)*b
def gelu_ops(x): return 0.5*x*(1+torch.tanh(0.7978845608*(x+0.044715*x*x*x)))
def gelu(x): return F.gelu(x)
def five(x): return torch.abs(torch.neg(torch.relu((x+0.5)*1.001)))
def drop_res_ln(x, r, w, b): return F.layer_norm(F.dropout(x, 0.1)+r, (x.shape[-1],), w, b)
def rope(x, c, s):
    h = x.shape[-1]//2; x1, x2 = x[..., :h], x[..., h:]; return x*c + torch.cat((-x2, x1), -1)*s
def lin_bias_relu(x, w, b): return torch.relu(torch.matmul(x, w)+b)
def lin_bias_gelu(x, w, b): return F.gelu(torch.matmul(x, w)+b)
def mm(x, w): return torch.matmul(x, w)
def attn_ops(q_, k, v):
    s = torch.matmul(q_, k.transpose(-1, -2))*(q_.shape[-1]**-0.5); return torch.matmul(torch.softmax(s, -1), v)
def attn_sdpa(q_, k, v): return F.scaled_dot_product_attention(q_, k, v)
def conv_bn_relu(x, w, m, v, g, b): return torch.relu(F.batch_norm(F.conv2d(x, w, padding=w.shape[-1]//2), m, v, g, b, False))
def fp8q(x):
    s = x.abs().amax(-1, keepdim=True).float()/448.0; return (x.float()/s).to(torch.float8_e4m3fn), s
def xent(x, t): return F.cross_entropy(x.float(), t)
def mlp(x, wg, wu, wd): return torch.matmul(F.silu(torch.matmul(x, wg))*torch.matmul(x, wu), wd)
def adam(p, g, m, v):
    m = m*0.9+g*0.1; v = v*0.999+g*g*0.001; return p-1e-3*m/(v.sqrt()+1e-8), m, v
def indep4(a, b, c, d): return torch.relu(a), torch.sigmoid(b), torch.tanh(c), d*d


def R(*s, dt=bf): return torch.empty(*s, device="meta", dtype=dt)
def build(name, d):
    T, H, S = d.get("T"), d.get("H"), d.get("S"); f32 = torch.float32
    if name == "bias_relu": return bias_relu, (R(d["B"], d["N"], dt=f32), R(d["N"], dt=f32))
    if name == "rmsnorm_ops": return rms, (R(T, H), R(H))
    if name == "rmsnorm_fp32_ops": return rms32, (R(T, H), R(H))
    if name == "add_rmsnorm": return add_rms, (R(T, H), R(T, H), R(H))
    if name in ("layernorm", "layernorm_ops"): return dict(layernorm=lnorm, layernorm_ops=lnorm_ops)[name], (R(T, H), R(H), R(H))
    if name in ("softmax", "softmax_ops", "gelu", "gelu_ops", "fp8_rowwise_quant"): return dict(softmax=softmax, softmax_ops=softmax_ops, gelu=gelu, gelu_ops=gelu_ops, fp8_rowwise_quant=fp8q)[name], (R(T, H),)
    if name == "swiglu": return swiglu, (R(T, H), R(T, H))
    if name == "five_cheap": return five, (R(S),)
    if name == "dropout_residual_layernorm": return drop_res_ln, (R(T, H), R(T, H), R(H), R(H))
    if name == "rope": return rope, (R(T, 32, 128), R(T, 1, 128), R(T, 1, 128))
    M, K, N = d.get("M"), d.get("K"), d.get("N")
    if name == "matmul": return mm, (R(M, K), R(K, N))
    if name == "matmul_bias_relu": return lin_bias_relu, (R(M, K), R(K, N), R(N))
    if name == "matmul_bias_gelu": return lin_bias_gelu, (R(M, K), R(K, N), R(N))
    if name.startswith("attention"):
        t = (d["B"], d["heads"], S, d["D"]); return (attn_ops if name == "attention_ops" else attn_sdpa), (R(*t), R(*t), R(*t))
    if name == "conv_bn_relu":
        n, ci, co, hw, k = d["N"], d["Cin"], d["Cout"], d["HW"], d["k"]; cl = dict(memory_format=torch.channels_last)
        return conv_bn_relu, (R(n, ci, hw, hw).to(**cl), R(co, ci, k, k).to(**cl), *(R(co, dt=f32) for _ in range(4)))
    if name == "cross_entropy": return xent, (R(T, d["V"]), torch.empty(T, device="meta", dtype=torch.int64))
    if name == "swiglu_mlp": return mlp, (R(T, H), R(H, d["I"]), R(H, d["I"]), R(d["I"], H))
    if name == "adam_step": return adam, tuple(R(S, dt=f32) for _ in range(4))
    if name == "independent4": return indep4, tuple(R(S) for _ in range(4))
    raise KeyError(name)
