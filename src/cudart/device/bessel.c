/*
 * Bessel functions of integer order for kernels. Below 25 the recurrence is run downwards from an
 * order whose function vanishes there (Miller's algorithm), and scaled by a known sum; the second
 * kind follows from these by Neumann's series. Above, Hankel's asymptotic series has full
 * precision. Formulas: Abramowitz and Stegun, 9.1 and 9.2. The error is a few units in the last
 * place of the function's largest values; close to a zero it is relatively larger.
 */
#define PI    3.14159265358979323846
#define GAMMA 0.57721566490153286061
#define FAR   25.0

extern double __nv_sin(double), __nv_cos(double), __nv_log(double), __nv_exp(double);
extern double __nv_lgamma(double);

struct orders {
    double j0, j1, jn, y0, y1;
};

/* For x > 0. What it computes for the second kind is correct below FAR. */
static void recur(int n, double x, struct orders *o)
{
    int start = (n > x ? n : (int)x) + 46 + (int)__builtin_sqrt(40.0 * (n > x ? n : x));
    double above = 0, here = 1e-200, norm = 0, even = 0, odd = 0, j1 = 0, jn = 0;
    for (int k = start; k > 0; k--) {
        double below = 2.0 * k / x * here - above;
        int at = k - 1, m = at / 2;
        double sign = m & 1 ? -1 : 1;
        above = here;
        here = below;
        if (at == n)
            jn = here;
        if (at == 1)
            j1 = here;
        if (at % 2 == 0) {
            norm += at ? 2 * here : here;
            even += at ? sign * here / m : 0;
        } else if (m)
            odd += sign * (2 * m + 1) / ((double)m * (m + 1)) * here;
        if (__builtin_fabs(here) > 1e200) {
            above *= 1e-200;
            here *= 1e-200;
            norm *= 1e-200;
            even *= 1e-200;
            odd *= 1e-200;
            j1 *= 1e-200;
            jn *= 1e-200;
        }
    }
    double l = __nv_log(x / 2) + GAMMA;
    o->j0 = here / norm;
    o->j1 = j1 / norm;
    o->jn = jn / norm;
    o->y0 = 2 / PI * l * o->j0 - 4 / PI * (even / norm);
    o->y1 = 2 / PI * ((l - 1) * o->j1 - o->j0 / x - odd / norm); /* minus its derivative */
}

/* For order 0 or 1, and x >= FAR. */
static void far(int n, double x, double *j, double *y)
{
    double t = 1, p = 1, q = 0, c = __nv_cos(x), s = __nv_sin(x);
    for (int k = 1; k < 60; k++) {
        double next = t * (4.0 * n * n - (2 * k - 1) * (2 * k - 1)) / (k * 8 * x);
        if (__builtin_fabs(next) > __builtin_fabs(t) || next == 0)
            break;
        t = next;
        if (k & 1)
            q += k & 2 ? -t : t;
        else
            p += k & 2 ? -t : t;
    }
    double cosine = n ? s - c : c + s, sine = n ? -(s + c) : s - c,
           scale = __builtin_sqrt(1 / (PI * x));
    *j = scale * (p * cosine - q * sine);
    *y = scale * (p * sine + q * cosine);
}

/* The first kind, n >= 0 and x >= 0. */
static double first(int n, double x)
{
    struct orders o;
    double a, b, unused;
    if (x == 0 || x == __builtin_inf())
        return n == 0 && x == 0 ? 1 : 0;
    /* The first terms of the series. */
    if (x < 1e-5) {
        a = n ? 1 : 1 - x * x / 4;
        for (int k = 1; k <= n && a > 0; k++)
            a *= x / 2 / k;
        return a;
    }
    if (x < FAR || n >= x) {
        if (n > x && n * __nv_log(x / 2) - __nv_lgamma(n + 1.0) < -800)
            return 0;
        recur(n, x, &o);
        return o.jn;
    }
    far(0, x, &a, &unused);
    if (n == 0)
        return a;
    far(1, x, &b, &unused);
    for (int k = 1; k < n; k++) {
        double next = 2.0 * k / x * b - a;
        a = b;
        b = next;
    }
    return b;
}

/* The second kind, n >= 0. */
static double second(int n, double x)
{
    struct orders o;
    double a, b, unused;
    if (x == 0)
        return -__builtin_inf();
    if (!(x > 0))
        return __builtin_nan("");
    if (x == __builtin_inf())
        return 0;
    if (x < 1e-9) {
        a = 2 / PI * (__nv_log(x / 2) + GAMMA);
        b = -2 / (PI * x);
    } else if (x < FAR) {
        recur(0, x, &o);
        a = o.y0;
        b = o.y1;
    } else {
        far(0, x, &unused, &a);
        far(1, x, &unused, &b);
    }
    if (n == 0)
        return a;
    for (int k = 1; k < n && b > -__builtin_inf(); k++) {
        double next = 2.0 * k / x * b - a;
        a = b;
        b = next;
    }
    return b;
}

double __nv_jn(int n, double x)
{
    if (x != x)
        return x;
    double sign = (n & 1) && (n < 0) != (x < 0) ? -1 : 1;
    return sign * first(n < 0 ? -n : n, __builtin_fabs(x));
}

double __nv_yn(int n, double x)
{
    return (n < 0 && n & 1 ? -1 : 1) * second(n < 0 ? -n : n, x);
}

/* The modified functions, for order 0 or 1. */
static double modified(int n, double x)
{
    double z = __builtin_fabs(x), t, sum;
    if (z < 20) {
        sum = t = n ? z / 2 : 1;
        for (int k = 1; k < 100 && t > sum * 1e-18; k++)
            sum += t *= z / 2 * (z / 2) / (k * (double)(k + n));
    } else {
        sum = t = 1;
        for (int k = 1; k < 60; k++) {
            double next = -t * (4.0 * n * n - (2 * k - 1) * (2 * k - 1)) / (k * 8 * z);
            if (__builtin_fabs(next) > __builtin_fabs(t) || next == 0)
                break;
            sum += t = next;
        }
        double half = __nv_exp(z / 2);
        sum = half * (sum / __builtin_sqrt(2 * PI * z)) * half;
    }
    return n && x < 0 ? -sum : sum;
}

#define BESSEL(name, value)                                                                        \
    double __nv_##name(double x)                                                                   \
    {                                                                                              \
        return value;                                                                              \
    }                                                                                              \
    float __nv_##name##f(float x)                                                                  \
    {                                                                                              \
        return (float)__nv_##name((double)x);                                                      \
    }
double __nv_j0(double), __nv_j1(double), __nv_y0(double), __nv_y1(double);
double __nv_cyl_bessel_i0(double), __nv_cyl_bessel_i1(double);
BESSEL(j0, __nv_jn(0, x))
BESSEL(j1, __nv_jn(1, x))
BESSEL(y0, __nv_yn(0, x))
BESSEL(y1, __nv_yn(1, x))
BESSEL(cyl_bessel_i0, modified(0, x))
BESSEL(cyl_bessel_i1, modified(1, x))

float __nv_jnf(int n, float x)
{
    return (float)__nv_jn(n, (double)x);
}

float __nv_ynf(int n, float x)
{
    return (float)__nv_yn(n, (double)x);
}
